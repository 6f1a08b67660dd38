package ignore

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, rules, path string
		dir, want         bool
	}{
		{"comment", "#a\n", "/r/#a", false, false},
		{"escaped comment", "\\#a\n", "/r/#a", false, true},
		{"escaped exclamation mark", "\\!a\n", "/r/!a", false, true},
		{"spaces at the end", "a   \n", "/r/a", false, true},
		{"protected space", "a\\ \n", "/r/a ", false, true},
		{"CRLF", "a\r\nb\r\n", "/r/a", false, true},
		{"mark at the start", "\xef\xbb\xbfa\n", "/r/a", false, true},
		{"directory only", "a/\n", "/r/a", false, false},
		{"directory only, directory", "a/\n", "/r/x/a", true, true},
		{"anchored", "/a\n", "/r/x/a", false, false},
		{"slash in the middle anchors", "x/a\n", "/r/y/x/a", false, false},
		{"last rule decides", "a\n!a\na\n", "/r/a", false, true},
		{"taken back", "a*\n!ab\n", "/r/ab", false, false},
		{"outside", "a\n", "/q/a", false, false},
		{"name of a neighbour", "a\n", "/rr/a", false, false},
		{"slash alone", "/\n", "/r/a", true, false},
		{"malformed class", "[a\n", "/r/[a", false, false},
		{"overlong rule", strings.Repeat("?", maxPattern+1) + "\n", "/r/" + strings.Repeat("a", maxPattern+1), false, false},
	} {
		if got := (*Level)(nil).Push("/r", []byte(c.rules)).Ignored(c.path, c.dir); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestNearestFirst(t *testing.T) {
	l := (*Level)(nil).Push("/r", []byte("*.log\n")).Push("/r/a", []byte("!keep.log\n"))
	for path, want := range map[string]bool{"/r/x.log": true, "/r/a/x.log": true, "/r/a/keep.log": false, "/r/keep.log": true} {
		if got := l.Ignored(path, false); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestBundle(t *testing.T) {
	b := Bundle(Bundle("", "/r", []byte("*.log\n\x01/\nx")), "/r/s", []byte("!a.log\n"))
	l := Unbundle(b)
	for path, want := range map[string]bool{"/r/a.log": true, "/r/s/a.log": false, "/r/s/b.log": true, "/x": false, "/r/x": true} {
		if got := l.Ignored(path, false); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	for _, junk := range []string{"", "\x01", "\x01\n", "\x01rel\n*\n", "no mark\n*\n"} {
		if Unbundle(junk).Ignored("/a", false) {
			t.Errorf("%q ignores something", junk)
		}
	}
}

// TestBounded: rules of a hostile repository must not stop a walk.
func TestBounded(t *testing.T) {
	done := make(chan bool)
	go func() {
		Match(strings.Repeat("a*", 200)+"b", strings.Repeat("a", 600))
		Match(strings.Repeat("**/", 100)+"b", strings.Repeat("a/", 600))
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("still matching")
	}
}

// FuzzMatch holds the matcher against a regular expression for the patterns that have one.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{{"*.go", "a.go"}, {"a/**/b", "a/x/y/b"}, {"**/x", "x"}, {"a?c", "abc"}, {"a?c", "a/c"}, {"a/**", "a/b/c"}, {"[a-c]*", "bz"}, {"***", "a/b"}, {"a**b", "a/b"}, {`\*`, "*"}, {"[", "["}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 100 || len(name) > 200 {
			return
		}
		got := Match(pattern, name)
		if strings.ContainsAny(pattern, `[\`) {
			return
		}
		var re strings.Builder
		re.WriteString(`(?s)^`)
		for i := 0; i < len(pattern); i++ {
			switch c := pattern[i]; c {
			case '*':
				j := i
				for j < len(pattern) && pattern[j] == '*' {
					j++
				}
				whole := j-i > 1 && (i == 0 || pattern[i-1] == '/') && (j == len(pattern) || pattern[j] == '/')
				switch {
				case whole && j < len(pattern):
					re.WriteString(`(?:.*/)?`)
					j++
				case whole:
					re.WriteString(`.*`)
				default:
					re.WriteString(`[^/]*`)
				}
				i = j - 1
			case '?':
				re.WriteString(`[^/]`)
			default:
				re.WriteString(regexp.QuoteMeta(string(rune(c))))
			}
		}
		re.WriteString(`$`)
		// Latin-1, so that a byte is a character on both sides.
		latin := make([]rune, len(name))
		for i := range len(name) {
			latin[i] = rune(name[i])
		}
		if want := regexp.MustCompile(re.String()).MatchString(string(latin)); got != want {
			t.Fatalf("%q on %q: %v, want %v", pattern, name, got, want)
		}
	})
}
