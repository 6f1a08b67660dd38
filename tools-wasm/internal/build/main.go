// Build makes the module of the file tools and its manifests: tools.wasm and tools.json in the folder
// given by -out. It needs the Go toolchain and nothing else. The same sources and toolchain give the same
// bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	out := flag.String("out", "sandbox/toolset/wasm", "folder for tools.wasm and tools.json")
	pkg := flag.String("pkg", "atoll/tools-wasm/coretools", "package to build")
	flag.Parse()
	if err := build(*out, *pkg); err != nil {
		fmt.Fprintln(os.Stderr, "build tools:", err)
		os.Exit(1)
	}
}

func build(out, pkg string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	manifests, err := Manifests()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "tools.json"), manifests, 0o644); err != nil {
		return err
	}
	return Module(filepath.Join(out, "tools.wasm"), pkg)
}

// Module compiles a package to a WASI module.
func Module(name, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", name, pkg)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
