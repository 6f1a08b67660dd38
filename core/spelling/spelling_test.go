package spelling

import "testing"

func TestClosest(t *testing.T) {
	names := []string{"session", "model", "tool", "run", "mode"}
	for _, tt := range []struct{ name, word, want string }{
		{"itself", "tool", "tool"},
		{"one letter too many", "sesssion", "session"},
		{"one letter missing", "modl", "mode"}, // as near as model
		{"another letter", "toul", "tool"},
		{"two neighbours exchanged", "sessoin", "session"},
		{"three edits", "sexxxon", ""},
		{"as many edits as letters", "x", ""},
		{"more edits than half of the letters", "foo", ""},
		{"nothing", "", ""},
	} {
		if got := Closest(tt.word, names); got != tt.want {
			t.Errorf("%s: %q for %q, want %q", tt.name, got, tt.word, tt.want)
		}
	}
}
