package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// list asks go for every package that the repository builds for one platform.
func list(t *testing.T, platform string, args ...string) []Package {
	t.Helper()
	goos, goarch, _ := strings.Cut(platform, "/")
	cmd := exec.Command("go", append(append([]string{"list", "-e", "-deps", "-json=ImportPath,Imports,CgoFiles,SFiles"}, args...), "./...")...)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var pkgs []Package
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestImports(t *testing.T) {
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64", "wasip1/wasm"} {
		for _, line := range CheckImports(list(t, platform)) {
			t.Errorf("%s: %s", platform, line)
		}
	}
}

// TestPlantedImport checks the check: a file added to a package by an overlay,
// with an import that the table forbids, must be found.
func TestPlantedImport(t *testing.T) {
	for _, tc := range []struct{ pkg, name, imports, want string }{
		{"kernels/quant", "quant", "atoll/core/message", "kernels/quant: may not import core/message"},
		{"core/message", "message", "github.com/cockroachdb/pebble/v2", "core/message: may not import github.com/cockroachdb/pebble/v2"},
		{"core/message", "message", "github.com/tetratelabs/wazero/api", "core/message: may not import github.com/tetratelabs/wazero/api"},
		{"core/message", "message", "testing", "core/message: may not import testing"},
		{"tools-wasm/walk2", "walk2", "atoll/tools-wasm/internal/tooltest", "tools-wasm/walk2: ships, so it may not import tools-wasm/internal/tooltest"},
		{"core/nowhere", "nowhere", "fmt", "core/nowhere: no rule"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			tmp := t.TempDir()
			planted := filepath.Join(tmp, "planted.go")
			os.WriteFile(planted, []byte("package "+tc.name+"\n\nimport _ \""+tc.imports+"\"\n"), 0o644)
			overlay := filepath.Join(tmp, "overlay.json")
			b, _ := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root(t), tc.pkg, "zz_planted.go"): planted}})
			os.WriteFile(overlay, b, 0o644)
			found := strings.Join(CheckImports(list(t, "linux/amd64", "-overlay", overlay)), "\n")
			if !strings.Contains(found, tc.want) {
				t.Errorf("found %q, want %q in it", found, tc.want)
			}
		})
	}
}

// TestTable checks that the table names no package twice and none that is gone.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Imports {
		if seen[r.Package] {
			t.Errorf("%s: two rules", r.Package)
		}
		seen[r.Package] = true
		for _, p := range append([]string{r.Package}, r.Allow...) {
			dir := filepath.Join(root(t), filepath.FromSlash(strings.TrimSuffix(p, "/...")))
			if st, err := os.Stat(dir); err != nil || !st.IsDir() {
				t.Errorf("%s: the table names %s, which does not exist", r.Package, p)
			}
		}
	}
}

func TestCheckImportsFindsCgoAndAssembly(t *testing.T) {
	got := CheckImports([]Package{
		{ImportPath: "atoll/kernels/ref", SFiles: []string{"dot_amd64.s"}},
		{ImportPath: "atoll/kernels/cpu", SFiles: []string{"dot_amd64.s"}},
		{ImportPath: "atoll/kernels/quant", CgoFiles: []string{"q.go"}},
		{ImportPath: "example.org/other", SFiles: []string{"x.s"}},
	})
	want := "kernels/ref: may not hold assembly (dot_amd64.s)\nkernels/quant: may not use cgo (q.go)"
	if strings.Join(got, "\n") != want {
		t.Errorf("got %q", got)
	}
}

// TestFiles looks at every file that git tracks.
func TestFiles(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("git ls-files: %v", err)
		}
		t.Skipf("git ls-files: %v (no checkout: nothing to look at)", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			continue // deleted, not yet committed
		}
		for _, line := range CheckFile(name, data) {
			t.Error(line)
		}
		if n := bytes.Count(data, []byte("\n")); strings.HasSuffix(name, ".go") && n > SoftCap {
			t.Logf("note: %s has %d lines (soft cap %d)", name, n, SoftCap)
		}
	}
}

func TestCheckFile(t *testing.T) {
	for _, tc := range []struct {
		name, data string
		want       int
	}{
		{"a.go", "see /wor" + "k/shared\n", 1},
		{"a.go", "see ../wor" + "k/shared and home/wor" + "k/x\n", 0},
		{"a.md", "index at pypi" + ".org/simple\n", 1},
		{"go.sum", "pypi" + ".org\n", 0},
		{"a.bin", "\x00/wor" + "k/\n", 0},
	} {
		if got := CheckFile(tc.name, []byte(tc.data)); len(got) != tc.want {
			t.Errorf("%s %q: %q", tc.name, tc.data, got)
		}
	}
}
