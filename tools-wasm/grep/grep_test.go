package grep

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"atoll/tools-wasm/internal/tooltest"
)

func TestGrep(t *testing.T) {
	dir := tooltest.Dir(t,
		"a.go", "package a\n\nfunc Foo() {}\n\nfunc Bar() { Foo() }\n",
		"b.txt", "foo (bar)\nFOO\nlast foo",
		"sub/c.go", "var Foo = 1\n",
		"bin", "foo\x00foo",
		"crlf", "x\r\nend\r\n",
		"u16", "\xff\xfet\x00e\x00s\x00t\x00\n\x00",
		"legacy", "caf\xe9 ole\n",
		"long", strings.Repeat("a", 5000)+"NEEDLE"+strings.Repeat("b", 5000)+"\n",
		"kelvin", "10 \u212a\n",
		".gitignore", "*.log\n", "x.log", "Foo\n", ".git/config", "Foo\n", "to.go", "-> a.go",
	)
	for _, c := range []struct{ name, args, want string }{
		{"word", `{"pattern":"Foo"}`, "a.go:3:func Foo() {}\na.go:5:func Bar() { Foo() }\nsub/c.go:1:var Foo = 1\n(1 binary file not searched)\n"},
		{"regexp", `{"pattern":"^func \\w+\\("}`, "a.go:3:func Foo() {}\na.go:5:func Bar() { Foo() }\n(1 binary file not searched)\n"},
		{"no text needed", `{"pattern":"^[A-Z]+$"}`, "b.txt:2:FOO\n(1 binary file not searched)\n"},
		{"alternatives", `{"pattern":"var|FOO"}`, "b.txt:2:FOO\nsub/c.go:1:var Foo = 1\n(1 binary file not searched)\n"},
		{"ignore case", `{"pattern":"foo","path":"b.txt","ignore_case":true}`, "b.txt:1:foo (bar)\nb.txt:2:FOO\nb.txt:3:last foo\n"},
		{"ignore case, Kelvin sign", `{"pattern":"10 k","ignore_case":true,"path":"kelvin"}`, "kelvin:1:10 \u212a\n"},
		{"literal", `{"pattern":"foo (bar)","literal":true}`, "b.txt:1:foo (bar)\n(1 binary file not searched)\n"},
		{"literal, ignore case", `{"pattern":"FOO (","literal":true,"ignore_case":true,"path":"b.txt"}`, "b.txt:1:foo (bar)\n"},
		{"one file", `{"pattern":"Foo","path":"sub/c.go"}`, "sub/c.go:1:var Foo = 1\n"},
		{"one directory", `{"pattern":"Foo","path":"sub"}`, "sub/c.go:1:var Foo = 1\n"},
		{"ignored file asked for", `{"pattern":"Foo","path":"x.log"}`, "x.log:1:Foo\n"},
		{"glob by name", `{"pattern":"Foo","glob":"c*.go"}`, "sub/c.go:1:var Foo = 1\n"},
		{"glob by path", `{"pattern":"Foo","glob":"sub/*.go"}`, "sub/c.go:1:var Foo = 1\n"},
		{"glob of a directory", `{"pattern":"Foo","glob":"sub/"}`, "sub/c.go:1:var Foo = 1\n"},
		{"context", `{"pattern":"^func Foo","path":"a.go","context":1}`, "a.go-2-\na.go:3:func Foo() {}\na.go-4-\n"},
		{"context that touches", `{"pattern":"func","path":"a.go","context":1}`, "a.go-2-\na.go:3:func Foo() {}\na.go-4-\na.go:5:func Bar() { Foo() }\n"},
		{"context of several files", `{"pattern":"var Foo|last foo","context":1,"glob":"*.{go,txt}"}`, "b.txt-2-FOO\nb.txt:3:last foo\n--\nsub/c.go:1:var Foo = 1\n"},
		{"CRLF", `{"pattern":"^end$","path":"crlf"}`, "crlf:2:end\n"},
		{"B053", `{"pattern":"^test$"}`, "u16:1:test\n(1 binary file not searched)\n"},
		{"legacy", `{"pattern":"ole","path":"legacy"}`, "legacy:1:caf\\xe9 ole\n"},
		{"long line", `{"pattern":"NEEDLE","path":"long"}`, "long:1:..." + strings.Repeat("a", 100) + "NEEDLE" + strings.Repeat("b", 194) + "...\n"},
		{"none", `{"pattern":"zzz","path":"a.go"}`, "(no matches)\n"},
		{"binary alone", `{"pattern":"foo","path":"bin"}`, "(no matches)\n(1 binary file not searched)\n"},
		{"not a regexp", `{"pattern":"foo("}`, `error: argument "pattern": not a regular expression: missing closing ) at "foo("; to search for it as plain text set literal to true`},
		{"newline", `{"pattern":"a\nb"}`, `error: argument "pattern": a match lies within one line; search for one line of it`},
		{"empty", `{"pattern":""}`, `error: argument "pattern": expected a pattern, not an empty string`},
		{"bad glob", `{"pattern":"x","glob":"[a"}`, `error: argument "glob": malformed pattern "[a"`},
		{"missing", `{"pattern":"x","path":"a.goo"}`, "error: search a.goo: no such file or directory; similar: a.go"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tooltest.Call(t, Tool, dir, c.args); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestIgnoreRules are B047, B049 and B051.
func TestIgnoreRules(t *testing.T) {
	b047 := tooltest.Dir(t, ".git/HEAD", "", "foo/bar/baz", "quux\n", "foo/keep", "quux\n", ".gitignore", "**/bar/*\n")
	b049 := tooltest.Dir(t, ".git/HEAD", "", "foo/bar", "n\n", "foo/fun", "n\n", "fig", "n\n", ".gitignore", "f*\n!foo\n")
	b051 := tooltest.Dir(t, "d/f.txt", "x\n", "d/up", "-> ..", "d/self", "-> .", "d2", "-> d")
	for _, c := range []struct{ name, dir, args, want string }{
		{"B047 from the top", b047, `{"pattern":"quux"}`, "foo/keep:1:quux\n"},
		{"B047 from below", b047, `{"pattern":"quux","path":"foo"}`, "foo/keep:1:quux\n"},
		{"B049", b049, `{"pattern":"n","glob":"f*"}`, "foo/bar:1:n\n"},
		{"B051", b051, `{"pattern":"x"}`, "d/f.txt:1:x\n"},
	} {
		got := tooltest.Call(t, Tool, c.dir, c.args)
		if c.name == "B049" {
			got = tooltest.Call(t, Tool, c.dir, `{"pattern":"^n$"}`)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestBounds(t *testing.T) {
	dir := tooltest.Dir(t, "many", strings.Repeat("match\n", 150), "wide", strings.Repeat(strings.Repeat("é", 400)+"\n", 200))
	got := tooltest.Call(t, Tool, dir, `{"pattern":"match"}`)
	if strings.Count(got, "\n") != 101 || !strings.HasSuffix(got, "many:100:match\n(only the first 100 matches are shown; use a narrower pattern, path or glob)\n") {
		t.Errorf("ends %q", got[len(got)-120:])
	}
	got = tooltest.Call(t, Tool, dir, `{"pattern":"é","context":20}`)
	if len(got) > 2*maxBytes+1000 || !strings.Contains(got, "only the first") {
		t.Errorf("%d bytes", len(got))
	}
}

// TestChunks puts matches at every place that the chunked reading could get wrong.
func TestChunks(t *testing.T) {
	line := func(n int, s string) string { return strings.Repeat("-", n-len(s)-1) + s + "\n" }
	for _, c := range []struct {
		name, content string
		want          []string // line numbers
	}{
		{"match at the end of a chunk", line(chunk, "needle") + "x\nneedle\n", []string{"1", "3"}},
		{"match across chunks", line(chunk-3, "x") + "needle\nneedle\n", []string{"2", "3"}},
		{"no newline at the end", line(chunk-3, "x") + "a\nneedle", []string{"3"}},
		{"line longer than a chunk", strings.Repeat("-", chunk-3) + "needle" + strings.Repeat("-", 3*chunk) + "\nx\nneedle\n", []string{"1", "3"}},
		{"long line that matches twice", "needle" + strings.Repeat("-", 2*chunk) + "needle\nneedle\n", []string{"1", "2"}},
		{"long line that matches late", strings.Repeat("-", 2*chunk+100) + "needle\nneedle\n", []string{"1", "2"}},
		{"long line at the end", "a\n" + strings.Repeat("-", 3*chunk) + "needle", []string{"2"}},
		{"many lines", strings.Repeat("abc\n", chunk) + "needle\n", []string{fmt.Sprint(chunk + 1)}},
		{"long line of the length of the buffer", strings.Repeat("-", chunk) + "\nneedle\n", []string{"2"}},
		{"UTF-8 mark", "\xef\xbb\xbfneedle\n" + strings.Repeat("abc\n", chunk) + "needle\n", []string{"1", fmt.Sprint(chunk + 2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tooltest.Dir(t, "f", c.content)
			for _, args := range []string{`{"pattern":"needle"}`, `{"pattern":"[n]eedl[a-e]"}`, `{"pattern":"NEEDLE","ignore_case":true}`, `{"pattern":"needle","context":1}`} {
				var got []string
				for _, m := range regexp.MustCompile(`(?m)^f:(\d+):`).FindAllStringSubmatch(tooltest.Call(t, Tool, dir, args), -1) {
					got = append(got, m[1])
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s: lines %v, want %v", args, got, c.want)
				}
			}
		})
	}
}

// TestMemory is the search part of B081.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big.txt"), []byte(strings.Repeat("line lorem ipsum dolor\n", 2_000_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := tooltest.Call(t, Tool, dir, `{"pattern":"nothing-here","path":"big.txt"}`)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; got != "(no matches)\n" || used > 1<<20 {
		t.Errorf("%q, %d bytes allocated", got, used)
	}
}

// FuzzPattern holds the search against the regexp package applied to every line.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"foo", "fo+", "^a.*b$", "(?:abc|de)f", "[Kk]elvin", "x{2,3}", "", `\bword\b`, "(foo)?bar", "a|b|", "ſtraße", "(?i)k", "(abc){2}d"} {
		f.Add(p, "foo bar\nabcf\r\nxx\nword K \u212a\n\u017f stra\u00dfe\nabcabcd\n", false, false)
		f.Add(p, "FOO\nABCF", true, false)
		f.Add(p, p+"\n", true, true)
	}
	f.Fuzz(func(t *testing.T, pattern, content string, fold, literal bool) {
		if len(pattern) > 60 || len(content) > 2000 || strings.Contains(pattern, "\n") || pattern == "" || !utf8.ValidString(pattern) {
			return // arguments are UTF-8
		}
		expr := pattern
		if literal {
			expr = regexp.QuoteMeta(pattern)
		}
		if fold {
			expr = "(?i)" + expr
		}
		re, err := regexp.Compile(expr)
		m, err2 := newMatcher(pattern, fold, literal)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %v, regexp says %v", pattern, err2, err)
		}
		if err != nil {
			return
		}
		var want []int
		for i, l := range bytes.Split([]byte(content), []byte{'\n'}) {
			if l = bytes.TrimSuffix(l, []byte{'\r'}); re.Match(l) {
				want = append(want, i+1)
			}
		}
		if n := len(want); n > 0 && (content == "" || strings.HasSuffix(content, "\n")) && want[n-1] == strings.Count(content, "\n")+1 {
			want = want[:n-1] // there is no line after the last newline
		}
		sc := &scanner{s: &search{matcher: m, context: 1}, line: 1}
		sc.lines([]byte(content))
		if len(want) <= maxMatches && fmt.Sprint(sc.hits) != fmt.Sprint(want) {
			t.Fatalf("%q in %q: lines %v, want %v", pattern, content, sc.hits, want)
		}
	})
}

func TestIndexByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		b := make([]byte, rng.IntN(100))
		for i := range b {
			b[i] = []byte{0, 1, 'x', 0x79, 0xf8, 'y'}[rng.IntN(6)]
		}
		if got, want := indexByte(b, 'x'), bytes.IndexByte(b, 'x'); got != want {
			t.Fatalf("%q: %d, want %d", b, got, want)
		}
		if got, want := indexEither(b, 'x', 0), bytes.IndexAny(b, "x\x00"); got != want {
			t.Fatalf("%q: %d, want %d", b, got, want)
		}
	}
}
