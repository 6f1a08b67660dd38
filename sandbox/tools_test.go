package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/toolset"
)

// TestBuiltinTools runs the embedded tools, when they are built.
func TestBuiltinTools(t *testing.T) {
	_, err := toolset.Builtin()
	if errors.Is(err, toolset.ErrNotBuilt) {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "src/a.txt"), "one\ntwo\n")
	for _, c := range []struct{ tool, args, want string }{
		{"read", `{"path":"src/a.txt"}`, "two"},
		{"ls", `{}`, "src/"},
		{"glob", `{"pattern":"**/*.txt"}`, "src/a.txt"},
		{"grep", `{"pattern":"tw."}`, "src/a.txt"},
		{"edit", `{"path":"src/a.txt","old":"two","new":"three"}`, ""},
		{"write", `{"path":"b/c.txt","content":"new"}`, ""},
	} {
		wasm, argv0, manifest, err := toolset.Load(c.tool)
		if err != nil {
			t.Errorf("%s: %v", c.tool, err)
			continue
		}
		m, err := shared.rt.Load(t.Context(), wasm, manifest, sandbox.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		in := sandbox.Call{Argv: []string{argv0}, Stdin: []byte(c.args), Grant: grant.Grant{
			Mounts: []grant.Mount{{Host: dir, Kind: grant.ReadWrite}}, Env: []string{"PWD=" + dir}, Limits: sandbox.LimitsFor(manifest, grant.Limits{}),
		}}
		res, err := m.Run(t.Context(), in)
		if err != nil || res.ExitCode != 0 || !strings.Contains(string(res.Stdout), c.want) {
			t.Errorf("%s: %v, exit %d, %q %q", c.tool, err, res.ExitCode, res.Stdout, res.Stderr)
		}
		t.Logf("%s: %v, %d changes", c.tool, res.Duration, len(res.Changes))
	}
	if got := read(t, filepath.Join(dir, "src/a.txt")); got != "one\nthree\n" {
		t.Errorf("edit: %q", got)
	}
	if got := read(t, filepath.Join(dir, "b/c.txt")); got != "new" {
		t.Errorf("write: %q", got)
	}
}

func BenchmarkBuiltinRead(b *testing.B) {
	wasm, argv0, manifest, err := toolset.Load("read")
	if err != nil {
		b.Skip(err)
	}
	m, err := shared.rt.Load(b.Context(), wasm, manifest, sandbox.Builtin())
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	write(b, filepath.Join(dir, "a.txt"), strings.Repeat("a line of text\n", 100))
	in := sandbox.Call{Argv: []string{argv0}, Stdin: []byte(`{"path":"a.txt"}`), Grant: grant.Grant{
		Mounts: []grant.Mount{{Host: dir, Kind: grant.ReadOnly}}, Env: []string{"PWD=" + dir},
	}}
	b.ReportAllocs()
	for b.Loop() {
		res, err := m.Run(b.Context(), in)
		if err != nil || res.ExitCode != 0 {
			b.Fatal(err)
		}
	}
}
