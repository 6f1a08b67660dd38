//go:build unix

package read

import (
	"path/filepath"
	"syscall"
	"testing"

	"atoll/tools-wasm/internal/tooltest"
)

func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := tooltest.Call(t, Tool, dir, `{"path":"fifo"}`); got != "error: read fifo: not a regular file" {
		t.Error(got)
	}
}
