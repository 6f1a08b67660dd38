package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/toolabi"
)

// TestForeignTool compiles a C program with the system's compiler and runs it as a tool of a third party.
func TestForeignTool(t *testing.T) {
	if _, err := exec.LookPath("clang"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("clang is missing: install clang, lld, wasi-libc and the wasm32 runtime of clang")
		}
		t.Skip("clang is missing: install clang, lld, wasi-libc and the wasm32 runtime of clang")
	}
	out := filepath.Join(t.TempDir(), "wc.wasm")
	cmd := exec.Command("clang", "--target=wasm32-wasi", "--sysroot=/usr", "-O1", "-o", out, "testdata/ctool/wc.c")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, b)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	// The manifest travels in the module.
	wasm = append(wasm, customSection(toolabi.Section, `{"name":"count","description":"Counts lines.","parameters":{"type":"object"}}`)...)
	manifest, err := toolabi.ManifestOf(wasm)
	if err != nil {
		t.Fatal(err)
	}
	m, err := shared.rt.Load(t.Context(), wasm, manifest, sandbox.ThirdParty(true))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "one\ntwo\n")
	g := grant.Grant{Mounts: []grant.Mount{{Host: dir, Kind: grant.ReadWrite}}, Env: []string{"PWD=" + dir}}
	res, err := m.Run(t.Context(), sandbox.Call{Argv: []string{"count", dir + "/a.txt"}, Stdin: []byte("{}"), Grant: g})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%v %s", err, res.Stderr)
	}
	if want := "count in={} home=unset\n2 8 " + dir + "/a.txt\n"; string(res.Stdout) != want {
		t.Errorf("%q, want %q", res.Stdout, want)
	}
	if got := read(t, filepath.Join(dir, "summary")); got != "1 files\n" || len(res.Changes) != 1 {
		t.Errorf("%q %+v", got, res.Changes)
	}
	g.Mounts[0].Kind = grant.ReadOnly
	if res, err := m.Run(t.Context(), sandbox.Call{Argv: []string{"count"}, Grant: g}); err != nil || res.ExitCode != 1 {
		t.Errorf("read-only: %v %d", err, res.ExitCode)
	}
	if res, err := m.Run(t.Context(), sandbox.Call{Argv: []string{"count", "/etc/passwd"}, Grant: g}); err != nil || res.ExitCode != 1 {
		t.Errorf("outside: %v %d %s", err, res.ExitCode, res.Stdout)
	}
}

// customSection encodes one custom section.
func customSection(name, content string) []byte {
	body := append(uleb(len(name)), name+content...)
	return append(append([]byte{0}, uleb(len(body))...), body...)
}

func uleb(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
