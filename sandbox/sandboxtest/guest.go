// Package sandboxtest holds what tests of the sandbox share: guests built from source, an escape suite that any
// runner of tools can be put through, and a runner for the conformance modules of WASI preview 1.
package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"atoll/sandbox/toolabi"
)

var builds sync.Map // source folder -> func() ([]byte, error)

// GoGuest compiles a folder of Go source to a WASI module with the Go toolchain, once a process.
func GoGuest(t testing.TB, dir string) []byte {
	t.Helper()
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	build, _ := builds.LoadOrStore(abs, sync.OnceValues(func() ([]byte, error) { return buildGo(abs) }))
	wasm, err := build.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func buildGo(dir string) ([]byte, error) {
	out, err := os.MkdirTemp("", "guest-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	file := filepath.Join(out, "guest.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if b, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build guest %s: %w\n%s", dir, err, b)
	}
	return os.ReadFile(file)
}

// Manifest is a manifest that asks for nothing.
func Manifest(name string) toolabi.Manifest {
	return toolabi.Manifest{Name: name, Description: "test", Parameters: []byte(`{"type":"object"}`)}
}
