//go:build unix

package gguf

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of file for reading.
func mapFile(file *os.File, size int) (data []byte, unmap func() error, err error) {
	data, err = unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// release gives back the pages that lie wholly in data[from:to].
func release(data []byte, from, to uint64) {
	page := uint64(os.Getpagesize())
	from = (from + page - 1) &^ (page - 1)
	if to = to &^ (page - 1); from < to {
		// Advice only: where it is not taken the pages just stay.
		_ = unix.Madvise(data[from:to], unix.MADV_DONTNEED)
	}
}
