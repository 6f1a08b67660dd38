package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFresh checks that the committed files are what the generator writes.
func TestFresh(t *testing.T) {
	for name, want := range generate() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is stale: run go generate in kernels/cpu", name)
		}
	}
	committed, err := filepath.Glob("../*.s")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range committed {
		if _, ok := generate()[filepath.Base(path)]; !ok {
			t.Errorf("%s is not written by the generator", path)
		}
	}
}
