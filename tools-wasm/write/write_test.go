package write

import (
	"os"
	"path/filepath"
	"testing"

	"atoll/tools-wasm/internal/tooltest"
)

func TestWrite(t *testing.T) {
	dir := tooltest.Dir(t, "a.txt", "old content\r\n", "dir/x", "", "link", "-> a.txt", "empty", "")
	for _, c := range []struct{ name, args, want, file, content string }{
		{"new", `{"path":"n.txt","content":"a\nb"}`, "created n.txt (3 bytes, 2 lines)\n", "n.txt", "a\nb"},
		{"new directories", `{"path":"p/q/n.txt","content":"x\n"}`, "created p/q/n.txt (2 bytes, 1 lines)\n", "p/q/n.txt", "x\n"},
		{"empty", `{"path":"e","content":""}`, "created e (0 bytes, 0 lines)\n", "e", ""},
		{"overwrite is exact", `{"path":"a.txt","content":"new\n"}`, "overwrote a.txt (13 bytes before, 4 bytes now)\n", "a.txt", "new\n"},
		{"into an empty file", `{"path":"empty","content":"x"}`, "overwrote empty (0 bytes before, 1 byte now)\n", "empty", "x"},
		{"through a link", `{"path":"link","content":"L"}`, "overwrote link (4 bytes before, 1 byte now)\n", "a.txt", "L"},
		{"directory", `{"path":"dir","content":"x"}`, "error: write dir: is a directory", "dir/x", ""},
		{"ends with a slash", `{"path":"newdir/","content":"x"}`, `error: argument "path": expected a file, not a directory`, "dir/x", ""},
		{"below a file", `{"path":"a.txt/b","content":"x"}`, "error: write a.txt/b: a part of the path is not a directory", "a.txt", "L"},
		{"no content", `{"path":"z"}`, `error: argument "content": missing, expected a string`, "dir/x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tooltest.Call(t, Tool, dir, c.args); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if b, err := os.ReadFile(filepath.Join(dir, c.file)); err != nil || string(b) != c.content {
				t.Errorf("%s holds %q, %v", c.file, b, err)
			}
		})
	}
	if _, err := os.Lstat(filepath.Join(dir, "newdir")); err == nil {
		t.Error("a refused path left a directory")
	}
}

// TestModeIsKept is the second half of B041.
func TestModeIsKept(t *testing.T) {
	dir := tooltest.Dir(t, "run.sh", "#!/bin/sh\necho Y\n")
	name := filepath.Join(dir, "run.sh")
	if err := os.Chmod(name, 0o751); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(name, filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	tooltest.Call(t, Tool, dir, `{"path":"run.sh","content":"#!/bin/sh\necho Z\n"}`)
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "other")); string(b) != "#!/bin/sh\necho Z\n" {
		t.Errorf("the hard link holds %q", b)
	}
}
