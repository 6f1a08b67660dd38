package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/sandboxtest"
)

// sharedDir finds a folder of the data that several checkouts share, beside the repository's root.
func sharedDir(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			found := filepath.Join(filepath.Dir(dir), "shared", name)
			if _, err := os.Stat(found); err == nil {
				return found
			}
			break
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("shared/%s is missing beside the repository", name)
	}
	t.Skipf("shared/%s is missing beside the repository", name)
	return ""
}

// TestConformance runs the preview 1 modules of the WASI test suite as third-party tools, so that the rewrite of their
// code is under test too.
func TestConformance(t *testing.T) {
	cases, err := sandboxtest.Cases(sharedDir(t, "wasi-testsuite"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 72 {
		t.Fatalf("%d cases, want at least 72", len(cases))
	}
	skips, err := sandboxtest.Skips("testdata/conformance-skips.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got := conformance(t, c)
			if reason, skip := skips[c.Name]; skip {
				if got == "" {
					t.Fatalf("passes, but is in the skip list: %s", reason)
				}
				t.Skipf("%s (%s)", reason, got)
			}
			if got != "" {
				t.Error(got)
			}
		})
	}
}

// conformance runs one case and says what is wrong.
func conformance(t *testing.T, c sandboxtest.Case) string {
	wasm, err := os.ReadFile(c.Wasm)
	if err != nil {
		t.Fatal(err)
	}
	m, err := shared.rt.Load(t.Context(), wasm, sandboxtest.Manifest("case"), sandbox.ThirdParty(true))
	if err != nil {
		return err.Error()
	}
	in := sandbox.Call{Argv: append([]string{filepath.Base(c.Wasm)}, c.Args...)}
	in.Grant.Env = c.Env
	in.Grant.Clock, in.Grant.Random = true, true
	if c.Root != "" {
		dir := filepath.Join(t.TempDir(), filepath.Base(c.Root))
		if err := sandboxtest.CopyDir(dir, c.Root); err != nil {
			t.Fatal(err)
		}
		in.Grant.Mounts = []grant.Mount{{Host: dir, Guest: "/", Kind: grant.ReadWrite}}
	}
	res, err := m.Run(t.Context(), in)
	switch {
	case err != nil:
		return err.Error() + ": " + string(res.Stderr)
	case res.ExitCode != c.ExitCode:
		return "exit code: " + strings.TrimSpace(string(res.Stderr))
	case c.Stdout != "" && string(res.Stdout) != c.Stdout:
		return "standard output: " + string(res.Stdout)
	}
	return ""
}
