//go:build linux && amd64 && !purego

package cpu

import "golang.org/x/sys/unix"

// mapMemory returns n zeroed bytes, on huge pages where the system allows them.
func mapMemory(n int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // a hint: without it only speed is lost
	return m, nil
}

func unmapMemory(m []byte) error { return unix.Munmap(m) }
