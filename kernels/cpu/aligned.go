//go:build amd64 && !purego

package cpu

import "unsafe"

// aligned returns n zeroed values that start at a multiple of 64 bytes.
func aligned(n int) []float32 {
	m := make([]float32, n+16)
	off := int(-uintptr(unsafe.Pointer(&m[0]))&63) / 4
	return m[off : off+n : off+n]
}

// alignedBytes is aligned for bytes.
func alignedBytes(n int) []byte {
	m := make([]byte, n+64)
	off := int(-uintptr(unsafe.Pointer(&m[0])) & 63)
	return m[off : off+n : off+n]
}
