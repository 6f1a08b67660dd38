//go:build unix

package sandbox

import "syscall"

// reserve takes address space for a guest's memory: zero pages that cost nothing until they are touched.
func reserve(n uint64) ([]byte, error) {
	return syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|mapNoReserve)
}

func unreserve(b []byte) error { return syscall.Munmap(b) }
