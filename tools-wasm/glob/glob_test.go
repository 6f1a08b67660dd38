package glob

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/tools-wasm/internal/tooltest"
)

func TestGlob(t *testing.T) {
	dir := tooltest.Dir(t,
		"main.go", "", "main_test.go", "", "cmd/x/x.go", "", "cmd/x/y.txt", "", "docs/a.md", "",
		".gitignore", "*.log\n/build/\n", "x.log", "", "build/out.go", "", ".git/config.go", "", ".hidden/h.go", "",
		"n\x1b[2Kame.c", "", "to.go", "-> main.go", "dangling.go", "-> nowhere",
	)
	for _, c := range []struct{ name, args, want string }{
		{"top level only", `{"pattern":"*.go"}`, "main.go\nmain_test.go\nto.go\n"},
		{"any depth", `{"pattern":"**/*.go"}`, ".hidden/h.go\ncmd/x/x.go\nmain.go\nmain_test.go\nto.go\n"},
		{"below a path", `{"pattern":"**/*.go","path":"cmd"}`, "cmd/x/x.go\n"},
		{"plain start", `{"pattern":"cmd/*/*.txt"}`, "cmd/x/y.txt\n"},
		{"absolute pattern", `{"pattern":"` + dir + `/cmd/**"}`, "cmd/x/x.go\ncmd/x/y.txt\n"},
		{"dot slash", `{"pattern":"./docs/*"}`, "docs/a.md\n"},
		{"alternatives", `{"pattern":"**/*.{md,txt}"}`, "cmd/x/y.txt\ndocs/a.md\n"},
		{"a plain name", `{"pattern":"main.go"}`, "main.go\n"},
		{"ignored", `{"pattern":"**/*.log"}`, "(no files match)\n"},
		{"ignored directory asked for", `{"pattern":"*","path":"build"}`, "build/out.go\n"},
		{"B079 control characters", `{"pattern":"*.c"}`, "n\\x1b[2Kame.c\n"},
		{"missing directory", `{"pattern":"*","path":"nope"}`, "error: search nope: no such file or directory"},
		{"missing plain start", `{"pattern":"nope/*.go"}`, "error: search nope: no such file or directory"},
		{"file as start", `{"pattern":"*","path":"main.go"}`, "error: search main.go: is not a directory"},
		{"malformed", `{"pattern":"[a"}`, `error: argument "pattern": malformed pattern "[a"`},
		{"empty", `{"pattern":""}`, `error: argument "pattern": expected a pattern such as **/*.go`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := tooltest.Call(t, Tool, dir, c.args)
			if got != c.want && !(strings.HasPrefix(c.want, "error") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestCycles is B051.
func TestCycles(t *testing.T) {
	dir := tooltest.Dir(t, "d/f.txt", "x\n", "d/up", "-> ..", "d/self", "-> .", "d2", "-> d")
	if got := tooltest.Call(t, Tool, dir, `{"pattern":"**/*.txt"}`); got != "d/f.txt\n" {
		t.Errorf("%q", got)
	}
}

func TestBound(t *testing.T) {
	dir := t.TempDir()
	for i := range maxShown + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := tooltest.Call(t, Tool, dir, `{"pattern":"f*"}`)
	if strings.Count(got, "\n") != maxShown+1 || !strings.HasSuffix(got, "f0199\n(only the first 200 files are shown; use a narrower pattern)\n") {
		t.Errorf("ends %q", got[len(got)-100:])
	}
}
