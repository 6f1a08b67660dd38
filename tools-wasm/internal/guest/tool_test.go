package guest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestMain_ExitCodes(t *testing.T) {
	tools := []*Tool{
		{Name: "ok", Run: func(_ Env, _ Args, out io.Writer) error { _, err := io.WriteString(out, "done"); return err }},
		{Name: "half", Run: func(_ Env, _ Args, out io.Writer) error { io.WriteString(out, "part"); return errors.New("half: no") }},
		{Name: "long", Run: func(Env, Args, io.Writer) error { return errors.New(strings.Repeat("é", 5000)) }},
		{Name: "panics", Run: func(Env, Args, io.Writer) error { panic("BUG: x") }},
		{Name: "arg", Params: []Param{{Name: "p", Kind: String, Required: true}}, Run: func(e Env, a Args, _ io.Writer) error {
			_, err := e.Resolve("p", a.String("p"))
			return err
		}},
	}
	for _, c := range []struct {
		name, argv0, in string
		code            int
		out, err        string
	}{
		{"success", "ok", `{}`, ExitOK, "done\n", ""},
		{"path and suffix of argv0", "/x/ok.wasm", `{}`, ExitOK, "done\n", ""},
		{"failure has no result", "half", `{}`, ExitFailed, "", "half: no\n"},
		{"message is bounded", "long", `{}`, ExitFailed, "", strings.Repeat("é", 2048) + "...\n"},
		{"panic is no usage error", "panics", `{}`, ExitFailed, "", "internal error: BUG: x\n"},
		{"malformed arguments", "arg", `{}`, ExitUsage, "", "argument \"p\": missing, expected a string\n"},
		{"argument refused by the tool", "arg", `{"p":""}`, ExitUsage, "", "argument \"p\": expected a path, not an empty string\n"},
		{"unknown tool", "nope", `{}`, ExitUsage, "", "no tool is called \"nope\"\n"},
		{"too much input", "ok", strings.Repeat(" ", maxInput+1), ExitUsage, "", "arguments: more than 16 MiB\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errw bytes.Buffer
			code := Main(tools, []string{c.argv0}, Env{Dir: "/w"}, strings.NewReader(c.in), &out, &errw)
			if code != c.code || out.String() != c.out || errw.String() != c.err {
				t.Errorf("got %d, %q, %q", code, out.String(), errw.String())
			}
		})
	}
}

func TestResolveAndDisplay(t *testing.T) {
	env := Env{Dir: "/w/s"}
	for _, c := range []struct{ in, abs, shown string }{
		{"a/b", "/w/s/a/b", "a/b"},
		{"./a//b/../c", "/w/s/a/c", "a/c"},
		{".", "/w/s", "."},
		{"/w/s/x", "/w/s/x", "x"},
		{"../t", "/w/t", "/w/t"},
		{"/w/st", "/w/st", "/w/st"},
		{"n\x1b[2Kame", "/w/s/n\x1b[2Kame", `n\x1b[2Kame`},
		{"a\u202eb\u009bc", "/w/s/a\u202eb\u009bc", `a\u202eb\u009bc`},
		{"bad\xff", "/w/s/bad\xff", `bad\xff`},
	} {
		abs, err := env.Resolve("path", c.in)
		if err != nil || abs != c.abs || env.Display(abs) != c.shown {
			t.Errorf("%q: %q, shown %q, %v", c.in, abs, env.Display(abs), err)
		}
	}
	if !(Env{Dir: "/"}).Inside("/x") || (Env{Dir: "/"}).Display("/x/y") != "x/y" {
		t.Error("the root as workspace")
	}
}

func TestFail(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"main.go", "util/strings.go", "README.md"} {
		os.MkdirAll(filepath.Dir(filepath.Join(dir, n)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := Env{Dir: dir}
	for _, c := range []struct{ name, path, want string }{
		{"misspelt", "mian.go", "read mian.go: no such file or directory; similar: main.go"},
		{"other extension", "main.py", "read main.py: no such file or directory; similar: main.go"},
		{"case", "readme.md", "read readme.md: no such file or directory; similar: README.md"},
		{"nothing near", "xyzzy.c", "read xyzzy.c: no such file or directory; . has: README.md, main.go, util/"},
		{"invented directory", "src/app/main.go", "read src/app/main.go: no such file or directory; . has: README.md, main.go, util/"},
		{"below", "util/string.go", "read util/string.go: no such file or directory; similar: util/strings.go"},
		{"outside", "/nonexistent/x", "read /nonexistent/x: outside the workspace, which is " + dir},
		{"workspace taken for the root", "/util/strings.go", "read /util/strings.go: outside the workspace, which is " + dir + "; did you mean util/strings.go?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			abs, _ := env.Resolve("path", c.path)
			_, err := os.Stat(abs)
			if got := env.Fail("read", abs, err).Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	err := env.Fail("write", dir+"/x", &os.PathError{Op: "open", Path: "x", Err: syscall.EROFS})
	if err.Error() != "write x: read-only: this mode does not allow changes" || !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
}

func TestReplaceKeepsTheFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	for _, c := range []struct{ name, old, now string }{
		{"grows", "abc", "abXcd"},
		{"shrinks", "abcdef", "abf"},
		{"empties", "abc", ""},
		{"from empty", "", "abc"},
		{"same length", "abc", "xyz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			os.Remove(name)
			os.Remove(name + "2")
			if err := os.WriteFile(name, []byte(c.old), 0o600); err != nil {
				t.Fatal(err)
			}
			os.Chmod(name, 0o751)
			if err := os.Link(name, name+"2"); err != nil {
				t.Fatal(err)
			}
			if err := Replace(name, []byte(c.old), []byte(c.now)); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name + "2") // through the other link: still the same file
			info, serr := os.Stat(name)
			if err != nil || serr != nil || string(got) != c.now || info.Mode().Perm() != 0o751 {
				t.Errorf("got %q, mode %v", got, info.Mode())
			}
		})
	}
}
