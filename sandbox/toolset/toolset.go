// Package toolset holds the tool modules that are built into atoll.
//
// All built-in tools live in one multi-call module: argument 0 chooses the tool. A clone in which `make wasm` has not
// run has no tools; asking for one is then an error that says so.
package toolset

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"atoll/sandbox/toolabi"
)

//go:embed all:wasm
var embedded embed.FS

// ErrNotBuilt means that this program was built before its tools.
var ErrNotBuilt = errors.New("built-in tools are missing: run `make wasm`, then build again")

// ErrUnknown means that no built-in tool has the name.
var ErrUnknown = errors.New("no such built-in tool")

// Set is a collection of tools in one module.
type Set struct {
	wasm  []byte
	tools []toolabi.Manifest
}

var builtin = sync.OnceValues(func() (*Set, error) { return Open(embedded, "wasm") })

// Builtin returns the embedded set.
func Builtin() (*Set, error) { return builtin() }

// Open reads the set in a folder of fsys: tools.wasm and tools.json.
func Open(fsys fs.FS, dir string) (*Set, error) {
	list, err := fs.ReadFile(fsys, dir+"/tools.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	if err != nil {
		return nil, fmt.Errorf("read tool manifests: %w", err)
	}
	tools, err := toolabi.ParseManifests(list)
	if err != nil {
		return nil, err
	}
	wasm, err := fs.ReadFile(fsys, dir+"/tools.wasm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	if err != nil {
		return nil, fmt.Errorf("read tool module: %w", err)
	}
	return &Set{wasm: wasm, tools: tools}, nil
}

// Manifests lists the tools' manifests. The caller must not change them.
func (s *Set) Manifests() []toolabi.Manifest { return s.tools }

// Wasm is the module that holds every tool of the set. The caller must not change it.
func (s *Set) Wasm() []byte { return s.wasm }

// Manifest returns the manifest of one tool.
func (s *Set) Manifest(name string) (toolabi.Manifest, error) {
	for _, m := range s.tools {
		if m.Name == name {
			return m, nil
		}
	}
	return toolabi.Manifest{}, fmt.Errorf("tool %q: %w", name, ErrUnknown)
}

// Load returns the module that holds a built-in tool, the argument 0 that chooses it, and its manifest. Every tool
// returns the same module bytes, so a caller that loads all of them compiles once.
func Load(name string) (wasm []byte, argv0 string, m toolabi.Manifest, err error) {
	s, err := Builtin()
	if err != nil {
		return nil, "", toolabi.Manifest{}, err
	}
	m, err = s.Manifest(name)
	if err != nil {
		return nil, "", toolabi.Manifest{}, err
	}
	return s.wasm, m.Name, m, nil
}
