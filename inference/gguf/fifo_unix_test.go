//go:build unix

package gguf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A FIFO has no end that could be waited for: it is refused before it is opened.
func TestFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe.gguf")
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	// With both ends held open here, opening it cannot wait.
	held, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}
