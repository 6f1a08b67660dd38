package sandboxed

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/core/permission"
	"atoll/core/tool"
	"atoll/sandbox"
	"atoll/sandbox/mount"
	"atoll/sandbox/toolset"
)

// compiled keeps the compiled tools for all tests of a run.
var compiled string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "atoll-sandboxed-test")
	if err != nil {
		panic(err)
	}
	compiled = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func TestFileDiff(t *testing.T) {
	file := func(text string) mount.State {
		return mount.State{Exists: true, Mode: 0o644, Size: int64(len(text)), Data: []byte(text)}
	}
	none := mount.State{}
	for _, c := range []struct {
		name, file    string
		before, after mount.State
		want          string
	}{
		{"change", "a.txt", file("one\ntwo\n"), file("one\n2\n"), "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"},
		{"new", "a.txt", none, file("x\n"), "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"},
		{"gone", "a.txt", file("x\n"), none, "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		{"new and empty", "a.txt", none, file(""), "--- /dev/null\n+++ b/a.txt\n[empty file]\n"},
		{"no newline at the end", "a", file("x"), file("y"), "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n"},
		{"nothing", "a", file("x"), file("x"), ""},
		{"never there", "a", none, none, ""},
		{"folder", "a", none, mount.State{Exists: true, Mode: fs.ModeDir | 0o755}, ""},
		{"mode", "a", file("x"), mount.State{Exists: true, Mode: 0o755, Size: 1, Data: []byte("x")}, "--- a/a\n+++ b/a\n[mode -rwxr-xr-x, was -rw-r--r--]\n"},
		{"binary", "a", file("x\x00"), file("y\x00z"), "--- a/a\n+++ b/a\n[binary: 3 bytes, was 2]\n"},
		{"too large", "a", mount.State{Exists: true, Size: 9, Cut: true}, file("y"), "--- a/a\n+++ b/a\n[not shown: too large, 9 and 1 bytes]\n"},
		{"link", "a", none, mount.State{Exists: true, Mode: fs.ModeSymlink | 0o777, Data: []byte("to\n")}, "--- /dev/null\n+++ b/a\n[symbolic link: \"to\\n\", was \"\"]\n"},
		{"name with a line break", "a\nb", file("x\n"), none, "--- \"a/a\\nb\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fileDiff(c.file, c.before, c.after); got != c.want {
				t.Errorf("%q\nwant\n%q", got, c.want)
			}
		})
	}
}

func TestDiffIsBounded(t *testing.T) {
	big := mount.State{Exists: true, Data: []byte(strings.Repeat("line\n", maxDiff/8))}
	res := &sandbox.Result{ChangesCut: true}
	for _, n := range []string{"/w/c", "/w/a", "/w/b"} {
		res.Changes = append(res.Changes, mount.Change{Path: n, After: big})
	}
	got := diff("/w", res)
	if len(got) > maxDiff+200 || !strings.Contains(got, "+++ b/a\n") || !strings.HasSuffix(got, "[the diff is cut before b: it is too long]\n") {
		t.Fatal(len(got), got[max(0, len(got)-100):])
	}
}

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		name string
		res  sandbox.Result
		err  error
		want string
		bad  bool
	}{
		{"ok", sandbox.Result{Stdout: []byte("out\n"), Stderr: []byte("warning")}, nil, "out\n", false},
		{"cut inside a character", sandbox.Result{Stdout: []byte("ab\xc3"), Truncated: true}, nil, "ab\n[the output was cut here: it is longer than the limit]", false},
		{"failed", sandbox.Result{ExitCode: 1, Stderr: []byte("no such file\n")}, nil, "no such file", true},
		{"failed with output", sandbox.Result{ExitCode: 2, Stdout: []byte("some\n"), Stderr: []byte("then it broke")}, nil, "some\nthen it broke", true},
		{"silent", sandbox.Result{ExitCode: 256}, nil, "the tool ended with code 256 and no message", true},
		{"limit", sandbox.Result{ExitCode: -1, Stdout: []byte("part")}, &sandbox.LimitError{Which: "wall", Limit: "2s"}, "part\nstopped by the limit wall (2s)", true},
		{"refused by a limit", sandbox.Result{ExitCode: 1, Limit: "open_files"}, nil, "limit reached: open_files", true},
		{"trap", sandbox.Result{ExitCode: -1}, &sandbox.TrapError{Reason: "unreachable"}, "unreachable", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, bad := output(&c.res, c.err)
			if bad != c.bad || got != c.want && !(c.name == "trap" && strings.Contains(got, c.want)) {
				t.Errorf("%q %v", got, bad)
			}
		})
	}
}

func tools(t *testing.T, ws string) *Tools {
	t.Helper()
	ts, err := New(Options{Workspace: ws, CacheDir: compiled})
	if errors.Is(err, toolset.ErrNotBuilt) {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ts.Close() })
	return ts
}

func workspace(t *testing.T) string {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

func get(t *testing.T, ts *Tools, name string) tool.Tool {
	t.Helper()
	for _, tl := range ts.List() {
		if tl.Spec().Name == name {
			return tl
		}
	}
	t.Fatal("no tool", name)
	return nil
}

func TestRequestPaths(t *testing.T) {
	ws := workspace(t)
	ts := tools(t, ws)
	if err := os.Mkdir(filepath.Join(ws, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tool, in, want string }{
		{"read", `{"path":"a/../b"}`, "b"},
		{"read", `{"path":"` + ws + `/x/y"}`, "x/y"},
		{"read", `{"path":"link/new"}`, "link/new real/new"},
		{"write", `{"path":"link/a/b"}`, "link/a/b real/a/b"},
		{"ls", `{}`, "."},
		{"grep", `{"pattern":"x"}`, "."},
		{"read", `{"path":"../x"}`, "../x"},
	} {
		r, err := get(t, ts, c.tool).Request(tool.Call{Input: json.RawMessage(c.in)})
		if err != nil || strings.Join(r.Paths, " ") != c.want {
			t.Errorf("%s %s: %q %v", c.tool, c.in, r.Paths, err)
		}
		if wantWrite := c.tool == "write"; (r.Access == permission.Write) != wantWrite || r.Recursive != (c.tool == "grep") {
			t.Errorf("%s: %+v", c.tool, r)
		}
	}
}

// The mode is enforced by the mount, whatever the agent decided before.
func TestModeIsAGrant(t *testing.T) {
	ws := workspace(t)
	ts := tools(t, ws)
	write := get(t, ts, "write")
	in := json.RawMessage(`{"path":"n.txt","content":"x"}`)
	for _, mode := range []permission.Mode{permission.ReadOnly, "", "bypass"} {
		res, err := write.Run(context.Background(), tool.Call{Input: in, Mode: mode})
		if err != nil || !res.IsError || res.Diff != "" {
			t.Errorf("mode %q: %+v %v", mode, res, err)
		}
		if _, err := os.Lstat(filepath.Join(ws, "n.txt")); err == nil {
			t.Errorf("mode %q wrote", mode)
		}
	}
	res, err := write.Run(context.Background(), tool.Call{Input: in, Mode: permission.WorkspaceWrite})
	if err != nil || res.IsError || !strings.Contains(res.Diff, "+++ b/n.txt\n") {
		t.Errorf("%+v %v", res, err)
	}
}

func TestCancelledAndClosed(t *testing.T) {
	ts := tools(t, workspace(t))
	ls := get(t, ts, "ls")
	ctx, cancel := context.WithCancel(context.Background())
	if res, err := ls.Run(ctx, tool.Call{Input: json.RawMessage(`{}`), Mode: permission.ReadOnly}); err != nil || res.IsError {
		t.Fatalf("%+v %v", res, err)
	}
	cancel()
	if res, err := ls.Run(ctx, tool.Call{Input: json.RawMessage(`{}`), Mode: permission.ReadOnly}); !errors.Is(err, context.Canceled) && !res.IsError {
		t.Errorf("%+v %v", res, err)
	}
	ts.Close()
	if _, err := ls.Run(context.Background(), tool.Call{Input: json.RawMessage(`{}`), Mode: permission.ReadOnly}); !errors.Is(err, tool.ErrUnavailable) {
		t.Error(err)
	}
}

// TestBadMounts: what is no folder to mount is an error before anything runs.
func TestBadMounts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "ro", "ro:", "rw:", dir, "overlay:" + dir, "ro:" + file, "ro:" + filepath.Join(dir, "none")} {
		c := Command{Name: "ls", Mode: permission.ReadOnly, Workspace: dir, Args: []byte("{}"), Mounts: []string{text}}
		if _, err := c.Run(t.Context()); !errors.Is(err, ErrCommand) {
			t.Errorf("mount %q: %v", text, err)
		}
	}
}
