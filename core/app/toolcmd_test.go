package app

import (
	"path/filepath"
	"strings"
	"testing"
)

// Where compiled tools cannot be kept, tools run all the same, and it is told why.
func TestCheckSandbox(t *testing.T) {
	p := newPlace(t, map[string]string{"file": "x"})
	p.opts.ModelsDir = filepath.Join(p.opts.DataDir, "models")
	out, err := CheckSandbox(t.Context(), p.opts)
	if err != nil || out.CacheError != nil {
		t.Fatalf("%+v %v", out, err)
	}
	p.opts.CacheDir = filepath.Join(p.opts.Workspace, "file")
	out, err = CheckSandbox(t.Context(), p.opts)
	if err != nil || out.CacheError == nil || !strings.Contains(out.CacheError.Error(), p.opts.CacheDir) {
		t.Fatalf("%+v %v", out, err)
	}
}
