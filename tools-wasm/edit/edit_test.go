package edit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/tools-wasm/internal/tooltest"
)

func TestEdit(t *testing.T) {
	for _, c := range []struct{ name, content, args, want, hold string }{
		{"reports what is there now", "a\nb\nc\nd\n", `"old":"b\nc","new":"x"`, "edited f\n1|a\n2|x\n3|d\n", "a\nx\nd\n"},
		{"deletion", "a\nb\nc\n", `"old":"b\n","new":""`, "edited f\n1|a\n2|c\n", "a\nc\n"},
		{"everything goes", "a\n", `"old":"a\n","new":""`, "edited f\n(the file is empty now)\n", ""},
		{"says what was ignored", "  a\n", `"old":"a \n","new":"b\n"`, "edited f (found by ignoring white space at line ends and indentation)\n1|  b\n", "  b\n"},
		{"long report is cut", strings.Repeat("x\n", 30), `"old":"x","new":"y","all":true`, "edited f, 30 places\n" + "1|y\n2|y\n3|y\n4|y\n5|y\n6|y\n7|y\n8|y\n9|y\n10|y\n11|y\n12|y\n(18 more lines)\n", strings.Repeat("y\n", 30)},
		{"UTF-8 mark stays", "\xef\xbb\xbfa\nb\n", `"old":"a","new":"c"`, "edited f\n1|c\n2|b\n", "\xef\xbb\xbfc\nb\n"},
		{"UTF-8 mark and a tolerant match", "\xef\xbb\xbf  a\nb\n", `"old":"a \nb","new":"c\nb"`, "edited f (found by ignoring white space at line ends and indentation)\n1|  c\n2|b\n", "\xef\xbb\xbf  c\nb\n"},
		{"B053 UTF-16LE", "\xff\xfet\x00e\x00s\x00t\x00\n\x00", `"old":"test","new":"bést"`, "edited f\n1|bést\n", "\xff\xfeb\x00\xe9\x00s\x00t\x00\n\x00"},
		{"UTF-16BE with CRLF", "\xfe\xff\x00a\x00\r\x00\n\x00b", `"old":"b","new":"b\nc"`, "edited f\n1|a\n2|b\n3|c\n", "\xfe\xff\x00a\x00\r\x00\n\x00b\x00\r\x00\n\x00c"},
		{"invalid UTF-16", "\xff\xfea\x00\x3d\xd8", `"old":"a","new":"b"`, "error: edit f: invalid UTF-16, the file was not changed", "\xff\xfea\x00\x3d\xd8"},
		{"binary", "a\x00b", `"old":"a","new":"b"`, "error: edit f: is a binary file", "a\x00b"},
		{"old empty", "a", `"old":"","new":"b"`, "error: edit f: old is empty; to replace the whole file use write", "a"},
		{"refused", "x\nx\n", `"old":"x","new":"b"`, "error: edit f: old matches 2 places (lines 1, 2); add surrounding lines to old, or set all to true", "x\nx\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tooltest.Dir(t, "f", c.content)
			if got := tooltest.Call(t, Tool, dir, `{"path":"f",`+c.args+`}`); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if b, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(b) != c.hold {
				t.Errorf("file holds %q, %v", b, err)
			}
		})
	}
}

func TestEditPaths(t *testing.T) {
	dir := tooltest.Dir(t, "d/x", "", "a.txt", "a\n", "link", "-> a.txt")
	if err := os.WriteFile(filepath.Join(dir, "huge"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "huge"), maxFile+1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, args, want string }{
		{"directory", `{"path":"d","old":"a","new":"b"}`, "error: edit d: is a directory"},
		{"missing", `{"path":"b.txt","old":"a","new":"b"}`, "error: edit b.txt: no such file or directory; similar: a.txt"},
		{"too large", `{"path":"huge","old":"a","new":"b"}`, "error: edit huge: the file has 16.0 MiB, more than the 16.0 MiB that edit takes"},
		{"created", `{"path":"n/new","old":"","new":"x\n"}`, "created n/new (2 bytes)\n"},
		{"through a link", `{"path":"link","old":"a","new":"b"}`, "edited link\n1|b\n"},
	} {
		if got := tooltest.Call(t, Tool, dir, c.args); got != c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, "link")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "b\n" {
		t.Errorf("a.txt holds %q", b)
	}
}
