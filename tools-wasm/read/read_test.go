package read

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"atoll/tools-wasm/internal/tooltest"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("é", 1500)
	dir := tooltest.Dir(t,
		"a.txt", "one\ntwo\nthree\n",
		"cut.txt", "one\ntwo",
		"empty", "",
		"blank", "\n\n",
		"crlf.txt", "a\r\nb\r\n",
		"sjis.txt", "\x93\xfa\x96\x7b = 1\n",
		"u16le", "\xff\xfet\x00e\x00s\x00t\x00\n\x00",
		"u16be", "\xfe\xff\x00a\x00\n\x00b",
		"bom", "\xef\xbb\xbfx\n",
		"bin", "\x7fELF\x00\x01",
		"png", "\x89PNG\r\n\x1a\n\x00\x00",
		"image.svg", "<svg/>\n",
		"long", "x\n"+long+"\ny\n",
		"esc", "a\x1b[2Jb\n",
		"dir/", "",
		"link", "-> a.txt",
		"lines", strings.Repeat("x\n", 5000),
		"wide", strings.Repeat(strings.Repeat("w", 999)+"\n", 100),
	)
	for _, c := range []struct{ name, args, want string }{
		{"whole", `{"path":"a.txt"}`, "1|one\n2|two\n3|three\n"},
		{"absolute", `{"path":"` + dir + `/a.txt"}`, "1|one\n2|two\n3|three\n"},
		{"through a link", `{"path":"link"}`, "1|one\n2|two\n3|three\n"},
		{"no final newline", `{"path":"cut.txt"}`, "1|one\n2|two\n"},
		{"part", `{"path":"a.txt","offset":2,"limit":1}`, "2|two\n(more lines follow; continue with offset 3)\n"},
		{"up to the end", `{"path":"a.txt","offset":2,"limit":2}`, "2|two\n3|three\n"},
		{"past the end", `{"path":"a.txt","offset":4}`, "(offset 4 is past the end: the file has 3 lines)\n"},
		{"far past the end", `{"path":"cut.txt","offset":99}`, "(offset 99 is past the end: the file has 2 lines)\n"},
		{"empty", `{"path":"empty"}`, "(empty file)\n"},
		{"blank lines", `{"path":"blank"}`, "1|\n2|\n"},
		{"CRLF", `{"path":"crlf.txt"}`, "1|a\n2|b\n(line ends: CRLF)\n"},
		{"B043 not UTF-8", `{"path":"sjis.txt"}`, "1|\\x93\\xfa\\x96{ = 1\n(not UTF-8: bytes shown as \\xNN)\n"},
		{"B053 UTF-16", `{"path":"u16le"}`, "1|test\n(encoding: UTF-16LE)\n"},
		{"UTF-16, other order", `{"path":"u16be"}`, "1|a\n2|b\n(encoding: UTF-16BE)\n"},
		{"mark is not shown", `{"path":"bom"}`, "1|x\n"},
		{"binary", `{"path":"bin"}`, "(bin is a binary file, not shown: ELF program, 6 bytes)\n"},
		{"image", `{"path":"png"}`, "(png is a binary file, not shown: PNG image, 10 bytes)\n"},
		{"image that is text", `{"path":"image.svg"}`, "1|<svg/>\n"},
		{"long line", `{"path":"long"}`, "1|x\n2|" + strings.Repeat("é", 1000) + "... (line cut, 3000 bytes long)\n3|y\n"},
		{"B079 the model gets the real bytes", `{"path":"esc"}`, "1|a\x1b[2Jb\n"},
		{"directory", `{"path":"dir"}`, "error: read dir: is a directory; use ls"},
		{"missing", `{"path":"b.txt"}`, "error: read b.txt: no such file or directory; similar: a.txt"},
		{"bad offset", `{"path":"a.txt","offset":0}`, `error: argument "offset": expected an integer from 1 to 9007199254740992`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tooltest.Call(t, Tool, dir, c.args); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	got := tooltest.Call(t, Tool, dir, `{"path":"lines"}`)
	if n := strings.Count(got, "\n"); n != 2001 || !strings.HasSuffix(got, "2000|x\n(more lines follow; continue with offset 2001)\n") {
		t.Errorf("default limit: %d lines, ends %q", n, got[len(got)-80:])
	}
	got = tooltest.Call(t, Tool, dir, `{"path":"wide","limit":5000}`)
	if len(got) > maxBytes+maxLine || !strings.HasSuffix(got, "(more lines follow; continue with offset 51)\n") {
		t.Errorf("byte bound: %d bytes, ends %q", len(got), got[len(got)-80:])
	}
}

// TestHugeFiles is B081: the cost follows the answer, not the file.
func TestHugeFiles(t *testing.T) {
	dir := t.TempDir()
	const lines = 2_000_000
	if err := os.WriteFile(filepath.Join(dir, "big.txt"), []byte(strings.Repeat("line lorem ipsum dolor\n", lines)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "oneline.txt"), []byte(strings.Repeat("x", 40_000_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "sparse.bin"))
	if err != nil || f.Truncate(2<<30) != nil || f.Close() != nil {
		t.Fatal("sparse file")
	}
	for _, c := range []struct{ args, want string }{
		{`{"path":"big.txt","offset":` + strconv.Itoa(lines-1) + `,"limit":1}`, strconv.Itoa(lines-1) + "|line lorem ipsum dolor\n(more lines follow; continue with offset 2000000)\n"},
		{`{"path":"sparse.bin"}`, "(sparse.bin is a binary file, not shown: only NUL bytes, 2.0 GiB)\n"},
		{`{"path":"oneline.txt"}`, "1|" + strings.Repeat("x", 2000) + "... (line cut, 40000000 bytes long)\n"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := tooltest.Call(t, Tool, dir, c.args)
		runtime.ReadMemStats(&after)
		if got != c.want {
			t.Errorf("%s: got %.100q", c.args, got)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
			t.Errorf("%s: %d bytes allocated", c.args, used)
		}
	}
}
