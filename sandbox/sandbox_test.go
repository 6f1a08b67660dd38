package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/sandboxtest"
)

var shared struct {
	rt    *sandbox.Runtime
	cache string
}

func TestMain(m *testing.M) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sandbox-cache-*")
	if err != nil {
		panic(err)
	}
	shared.cache = dir
	if shared.rt, err = sandbox.New(ctx, sandbox.Options{CacheDir: dir}); err != nil {
		panic(err)
	}
	code := m.Run()
	shared.rt.Close(ctx)
	os.RemoveAll(dir)
	os.Exit(code)
}

// guest is the module of testdata/guest, compiled once.
func guest(t testing.TB) *sandbox.Module {
	t.Helper()
	wasm := sandboxtest.GoGuest(t, "testdata/guest")
	m, err := shared.rt.Load(t.Context(), wasm, sandboxtest.Manifest("guest"), sandbox.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs the guest with a directory mounted.
func run(t testing.TB, dir string, kind grant.Kind, args ...string) *sandbox.Result {
	t.Helper()
	g := grant.Grant{Env: []string{"PWD=" + dir}}
	if dir != "" {
		g.Mounts = []grant.Mount{{Host: dir, Kind: kind}}
	}
	res, err := guest(t).Run(t.Context(), sandbox.Call{Argv: append([]string{"guest"}, args...), Grant: g})
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return res
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/b.txt"), "hello")
	if res := run(t, dir, grant.ReadOnly, "cat", "a/b.txt"); string(res.Stdout) != "hello" || res.ExitCode != 0 {
		t.Fatalf("read: %q %q %d", res.Stdout, res.Stderr, res.ExitCode)
	}
	if res := run(t, dir, grant.ReadOnly, "try", "write", "a/b.txt", "x"); !strings.Contains(string(res.Stdout), "read-only") && !strings.Contains(string(res.Stdout), "Read-only") {
		t.Fatalf("write on read-only: %q %q", res.Stdout, res.Stderr)
	}
	res := run(t, dir, grant.ReadWrite, "write", "a/b.txt", "changed")
	if res.ExitCode != 0 || read(t, filepath.Join(dir, "a/b.txt")) != "changed" {
		t.Fatalf("write: %q %d", res.Stderr, res.ExitCode)
	}
	if len(res.Changes) != 1 || string(res.Changes[0].Before.Data) != "hello" || string(res.Changes[0].After.Data) != "changed" {
		t.Fatalf("changes: %+v", res.Changes)
	}
	if res := run(t, dir, grant.ReadOnly, "find", dir); res.ExitCode != 0 {
		t.Fatalf("find: %s", res.Stderr)
	} else {
		t.Logf("%s %v %+v", res.Stdout, res.Duration, res.Audit)
	}
}
