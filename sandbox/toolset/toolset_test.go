package toolset

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

func TestOpen(t *testing.T) {
	tools := &fstest.MapFile{Data: []byte(`[{"name":"read","description":"Reads.","parameters":{"type":"object"}}]`)}
	wasm := &fstest.MapFile{Data: []byte("\x00asm\x01\x00\x00\x00")}
	s, err := Open(fstest.MapFS{"wasm/tools.json": tools, "wasm/tools.wasm": wasm}, "wasm")
	if err != nil || len(s.Manifests()) != 1 || s.Manifests()[0].Name != "read" || len(s.Wasm()) != 8 {
		t.Fatalf("%+v %v", s, err)
	}
	if _, err := s.Manifest("write"); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
	for name, fsys := range map[string]fstest.MapFS{
		"nothing": {}, "no module": {"wasm/tools.json": tools}, "no manifests": {"wasm/tools.wasm": wasm},
	} {
		if _, err := Open(fsys, "wasm"); !errors.Is(err, ErrNotBuilt) || !strings.Contains(err.Error(), "make wasm") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(fstest.MapFS{"wasm/tools.json": {Data: []byte(`[{}]`)}, "wasm/tools.wasm": wasm}, "wasm"); err == nil {
		t.Error("a broken manifest")
	}
}
