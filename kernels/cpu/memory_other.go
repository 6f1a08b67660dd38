//go:build !linux && amd64 && !purego

package cpu

// mapMemory returns n zeroed bytes, 64-byte aligned.
func mapMemory(n int) ([]byte, error) { return alignedBytes(n), nil }

func unmapMemory([]byte) error { return nil }
