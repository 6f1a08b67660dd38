//go:build !unix && !windows

package gguf

import (
	"io"
	"os"
)

// mapFile reads the file where there is no mapping.
func mapFile(file *os.File, size int) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}

func release([]byte, uint64, uint64) {}
