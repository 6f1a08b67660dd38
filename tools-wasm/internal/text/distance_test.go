package text

import "testing"

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       int
	}{
		{"equal", "main.go", "main.go", 0},
		{"from nothing", "", "abc", 3},
		{"to nothing", "abc", "", 3},
		{"one in the middle missing", "mai.go", "main.go", 1},
		{"one replaced", "main.go", "mein.go", 1},
		{"shifted", "abcdef", "bcdefa", 2},
		{"characters, not bytes", "é", "è", 1},
	} {
		if got := Distance([]rune(tt.a), []rune(tt.b)); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
