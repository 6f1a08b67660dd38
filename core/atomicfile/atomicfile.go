// Package atomicfile replaces small files in one step: who reads finds the old content or the new, never a part of it.
package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path by data. It is not synced to the disk, so after a power failure the file may be damaged:
// it is for what can be made again.
func Write(path string, data []byte, mode fs.FileMode) error {
	// A name with a dot is hidden from whoever lists the folder meanwhile.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
