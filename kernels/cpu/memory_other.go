//go:build !linux && amd64 && !purego

package cpu

import "unsafe"

// mapMemory returns n zeroed bytes, 64-byte aligned.
func mapMemory(n int) ([]byte, error) {
	m := make([]byte, n+64)
	off := int(-uintptr(unsafe.Pointer(&m[0])) & 63)
	return m[off : off+n : off+n], nil
}

func unmapMemory([]byte) error { return nil }
