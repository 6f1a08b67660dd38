package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/toolabi"
	"atoll/tools-wasm/coretools/tools"
	"atoll/tools-wasm/internal/ignore"
	"atoll/tools-wasm/internal/tooltest"
)

// built is the module, compiled once for all tests.
var built = sync.OnceValues(func() (modules map[string]*sandbox.Module, err error) {
	dir, err := os.MkdirTemp("", "coretools")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "tools.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", name, ".")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	wasm, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	rt, err := sandbox.New(ctx, sandbox.Options{})
	if err != nil {
		return nil, err
	}
	modules = make(map[string]*sandbox.Module)
	for _, t := range tools.All() {
		m := toolabi.Manifest{Name: t.Name, Description: t.Description, Parameters: []byte(t.Schema())}
		if modules[t.Name], err = rt.Load(ctx, wasm, m, sandbox.Builtin()); err != nil {
			return nil, err
		}
	}
	return modules, nil
})

// call runs one tool inside the sandbox and returns its exit code and what it said. The name of the
// workspace is replaced by W.
func call(t *testing.T, kind grant.Kind, dir, tool, args string, env ...string) (int, string) {
	t.Helper()
	modules, err := built()
	if err != nil {
		t.Fatal(err)
	}
	res, err := modules[tool].Run(t.Context(), sandbox.Call{
		Argv:  []string{tool},
		Stdin: []byte(args),
		Grant: grant.Grant{Mounts: []grant.Mount{{Host: dir, Kind: kind}}, Env: append(env, toolabi.EnvWorkspace+"="+dir)},
	})
	if err != nil {
		t.Fatalf("%s: %v, %s", tool, err, res.Stderr)
	}
	return res.ExitCode, strings.ReplaceAll(string(res.Stdout)+string(res.Stderr), dir, "W")
}

// step is one call, what it says, and what a file holds afterwards.
type step struct {
	tool, args string
	code       int
	want       string
	file, hold string
}

// TestCases runs the cases of the edit, search and perf lists through the real module in the real sandbox.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		steps []step
	}{
		{"B037", []string{"f.txt", "a\r\nb\nc"}, []step{
			{tool: "edit", args: `{"path":"f.txt","old":"c","new":"C"}`, want: "edited f.txt\n2|b\n3|C\n", file: "f.txt", hold: "a\r\nb\nC"}}},
		{"B039", []string{"f", "price = OLD\n", "g", "OLD OLD\n"}, []step{
			{tool: "edit", args: `{"path":"f","old":"OLD","new":"$$ $& $1 $0 ${x} \\1 $` + "`" + ` $'"}`, want: "edited f\n1|price = $$ $& $1 $0 ${x} \\1 $` $'\n", file: "f", hold: "price = $$ $& $1 $0 ${x} \\1 $` $'\n"},
			{tool: "edit", args: `{"path":"g","old":"OLD","new":"$1","all":true}`, want: "edited g, 2 places\n1|$1 $1\n", file: "g", hold: "$1 $1\n"}}},
		{"B043", []string{"sjis.txt", "\x93\xfa\x96\x7b = 1\n"}, []step{
			{tool: "read", args: `{"path":"sjis.txt"}`, want: "1|\\x93\\xfa\\x96{ = 1\n(not UTF-8: bytes shown as \\xNN)\n"},
			{tool: "edit", args: `{"path":"sjis.txt","old":"= 1","new":"= 2"}`, want: "edited sjis.txt\n1|\\x93\\xfa\\x96{ = 2\n", file: "sjis.txt", hold: "\x93\xfa\x96\x7b = 2\n"}}},
		{"B047", []string{".git/HEAD", "", "foo/bar/baz", "quux\n", "foo/keep", "quux\n", ".gitignore", "**/bar/*\n"}, []step{
			{tool: "grep", args: `{"pattern":"quux"}`, want: "foo/keep:1:quux\n"},
			{tool: "grep", args: `{"pattern":"quux","path":"foo"}`, want: "foo/keep:1:quux\n"}}},
		{"B049", []string{".git/HEAD", "", "foo/bar", "n\n", "foo/fun", "n\n", "fig", "n\n", ".gitignore", "f*\n!foo\n"}, []step{
			{tool: "grep", args: `{"pattern":"^n$"}`, want: "foo/bar:1:n\n"}}},
		{"B051", []string{"d/f.txt", "x\n", "d/up", "-> ..", "d/self", "-> .", "d2", "-> d"}, []step{
			{tool: "glob", args: `{"pattern":"**/*.txt"}`, want: "d/f.txt\n"},
			{tool: "grep", args: `{"pattern":"x"}`, want: "d/f.txt:1:x\n"}}},
		{"B053", []string{"u.txt", "\xff\xfet\x00e\x00s\x00t\x00\n\x00"}, []step{
			{tool: "grep", args: `{"pattern":"^test$"}`, want: "u.txt:1:test\n"},
			{tool: "read", args: `{"path":"u.txt"}`, want: "1|test\n(encoding: UTF-16LE)\n"},
			{tool: "edit", args: `{"path":"u.txt","old":"test","new":"best"}`, want: "edited u.txt\n1|best\n", file: "u.txt", hold: "\xff\xfeb\x00e\x00s\x00t\x00\n\x00"}}},
		{"write and list", []string{"a", "1"}, []step{
			{tool: "write", args: `{"path":"p/q/new.txt","content":"one\ntwo\n"}`, want: "created p/q/new.txt (8 bytes, 2 lines)\n", file: "p/q/new.txt", hold: "one\ntwo\n"},
			{tool: "write", args: `{"path":"a","content":""}`, want: "overwrote a (1 byte before, 0 bytes now)\n", file: "a", hold: ""},
			{tool: "ls", args: `{}`, want: "a\np/\n"},
			{tool: "ls", args: `{"path":"p"}`, want: "q/\n"}}},
		{"failures", []string{"main.go", "package a\n"}, []step{
			{tool: "read", args: `{"path":"mian.go"}`, code: 1, want: "read mian.go: no such file or directory; similar: main.go\n"},
			{tool: "read", args: `{"path":"/etc/passwd"}`, code: 1, want: "read /etc/passwd: outside the workspace, which is W\n"},
			{tool: "write", args: `{"path":"/etc/x","content":""}`, code: 1, want: "write /etc/x: outside the workspace, which is W\n"},
			{tool: "edit", args: `{"path":"../x","old":"","new":"y"}`, code: 1, want: "outside the workspace, which is W\n"},
			{tool: "ls", args: `{"path":".."}`, code: 1, want: "outside the workspace, which is W\n"},
			{tool: "glob", args: `{"pattern":"/etc/*"}`, code: 1, want: "search /etc: outside the workspace, which is W\n"},
			{tool: "read", args: `{"file":"x"}`, code: 2, want: "argument \"file\": unknown; arguments are path, offset, limit\n"},
			{tool: "edit", args: `{"path":"main.go","old":"package b","new":"package c"}`, code: 1, want: "edit main.go: old was not found; it must be the file's text, with its white space and indentation. Nearest text, lines 1 to 1:\n1|package a\n"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tooltest.Dir(t, c.files...)
			for _, s := range c.steps {
				code, got := call(t, grant.ReadWrite, dir, s.tool, s.args)
				if code != s.code || !strings.HasSuffix(got, s.want) || code == 0 && got != s.want {
					t.Errorf("%s %s: exit %d\ngot  %q\nwant %q", s.tool, s.args, code, got, s.want)
				}
				if s.file == "" {
					continue
				}
				if b, err := os.ReadFile(filepath.Join(dir, s.file)); err != nil || string(b) != s.hold {
					t.Errorf("%s %s: %s holds %q, %v", s.tool, s.args, s.file, b, err)
				}
			}
		})
	}
}

// TestModes is B041, and that a read-only mount is told as such.
func TestModes(t *testing.T) {
	dir := tooltest.Dir(t, "run.sh", "#!/bin/sh\necho X\n")
	name := filepath.Join(dir, "run.sh")
	if err := os.Chmod(name, 0o751); err != nil {
		t.Fatal(err)
	}
	for _, s := range []step{
		{tool: "edit", args: `{"path":"run.sh","old":"X","new":"Y"}`, hold: "#!/bin/sh\necho Y\n"},
		{tool: "write", args: `{"path":"run.sh","content":"#!/bin/sh\necho Z\n"}`, hold: "#!/bin/sh\necho Z\n"},
	} {
		for _, kind := range []grant.Kind{grant.ReadOnly, grant.ReadWrite} {
			before, _ := os.ReadFile(name)
			code, got := call(t, kind, dir, s.tool, s.args)
			b, err := os.ReadFile(name)
			info, serr := os.Stat(name)
			if err != nil || serr != nil || info.Mode().Perm() != 0o751 {
				t.Fatalf("%v, %v, mode %v", err, serr, info.Mode())
			}
			if kind == grant.ReadOnly {
				if want := s.tool + " run.sh: read-only: this mode does not allow changes\n"; code != 1 || got != want || string(b) != string(before) {
					t.Errorf("read-only: exit %d, %q, file %q", code, got, b)
				}
			} else if code != 0 || string(b) != s.hold {
				t.Errorf("exit %d, %q, file %q", code, got, b)
			}
		}
	}
	if code, got := call(t, grant.ReadOnly, dir, "write", `{"path":"new/x","content":""}`); code != 1 || got != "write new/x: read-only: this mode does not allow changes\n" {
		t.Errorf("exit %d, %q", code, got)
	}
}

// TestRulesFromAbove is the third part of B047: the workspace is below the ignore file.
func TestRulesFromAbove(t *testing.T) {
	dir := tooltest.Dir(t, "foo/bar/baz", "quux\n", "foo/keep", "quux\n")
	bundle := ignore.Bundle("", dir, []byte("**/bar/*\n"))
	if code, got := call(t, grant.ReadOnly, filepath.Join(dir, "foo"), "grep", `{"pattern":"quux"}`, toolabi.EnvIgnore+"="+bundle); code != 0 || got != "keep:1:quux\n" {
		t.Errorf("exit %d, %q", code, got)
	}
}

// TestHuge is B081 at a tenth of its size: what must not grow with the file is told by the read and grep
// packages; here it counts that the module gets there within the limits of a call.
func TestHuge(t *testing.T) {
	dir := tooltest.Dir(t, "big.txt", strings.Repeat("line lorem ipsum dolor\n", 2_000_000))
	if err := os.WriteFile(filepath.Join(dir, "sparse.bin"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "sparse.bin"), 2<<30); err != nil {
		t.Fatal(err)
	}
	for _, s := range []step{
		{tool: "read", args: `{"path":"big.txt","offset":1999999,"limit":1}`, want: "1999999|line lorem ipsum dolor\n(more lines follow; continue with offset 2000000)\n"},
		{tool: "read", args: `{"path":"sparse.bin"}`, want: "(sparse.bin is a binary file, not shown: only NUL bytes, 2.0 GiB)\n"},
		{tool: "grep", args: `{"pattern":"nothing-here","path":"big.txt"}`, want: "(no matches)\n"},
	} {
		if code, got := call(t, grant.ReadOnly, dir, s.tool, s.args); code != 0 || got != s.want {
			t.Errorf("%s: exit %d, %.200q", s.tool, code, got)
		}
	}
}
