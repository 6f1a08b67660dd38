package ls

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/tools-wasm/internal/tooltest"
)

func TestLs(t *testing.T) {
	dir := tooltest.Dir(t, "b.txt", "x", "a/inner", "", ".hidden", "", ".git/config", "", "link", "-> b.txt", "gone", "-> nowhere",
		"n\x1b[2Kame", "", "big", strings.Repeat("x", 150<<10), "empty/", "")
	for _, c := range []struct{ name, args, want string }{
		{"workspace", `{}`, ".git/\n.hidden\na/\nb.txt\nbig (150.0 KiB)\nempty/\ngone -> nowhere\nlink -> b.txt\nn\\x1b[2Kame\n"},
		{"empty path is the workspace", `{"path":""}`, ".git/\n.hidden\na/\nb.txt\nbig (150.0 KiB)\nempty/\ngone -> nowhere\nlink -> b.txt\nn\\x1b[2Kame\n"},
		{"below", `{"path":"a"}`, "inner\n"},
		{"empty", `{"path":"empty/"}`, "(empty directory)\n"},
		{"file", `{"path":"b.txt"}`, "b.txt is a file (1 byte); use read\n"},
		{"missing", `{"path":"aa"}`, "error: list aa: no such file or directory; similar: a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := tooltest.Call(t, Tool, dir, c.args)
			if got != c.want && !strings.HasPrefix(c.want, "error") || !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestBound(t *testing.T) {
	dir := t.TempDir()
	for i := range maxShown + 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := tooltest.Call(t, Tool, dir, `{}`)
	if strings.Count(got, "\n") != maxShown+1 || !strings.HasSuffix(got, "f0499\n(3 more entries not shown; use glob to narrow)\n") {
		t.Errorf("ends %q", got[len(got)-100:])
	}
}
