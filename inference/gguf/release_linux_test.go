package gguf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"atoll/kernels/quant"
)

// fileBytes is how much of the process's resident memory is pages of files.
func fileBytes(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident, shared int
	if _, err := fmt.Sscan(string(data), &size, &resident, &shared); err != nil {
		t.Fatal(err)
	}
	return shared * os.Getpagesize()
}

// What is released is no longer resident, and only that.
func TestReleaseGivesMemoryBack(t *testing.T) {
	const size = 32 << 20
	path := filepath.Join(t.TempDir(), "m.gguf")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	err = Write(file, nil, []Blob{{"a", quant.F32, []uint64{size / 4}, data}, {"b", quant.F32, []uint64{size / 4}, data}})
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, x := range f.Tensors() {
		view, err := x.Data()
		if err != nil || !bytes.Equal(view, data) {
			t.Fatal("data", err)
		}
	}
	before := fileBytes(t)
	a, _ := f.Tensor("a")
	f.Release(a)
	freed := before - fileBytes(t)
	if freed < size*9/10 || freed > size*11/10 {
		t.Errorf("releasing %d bytes gave %d back", size, freed)
	}
}
