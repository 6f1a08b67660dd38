//go:build unix && !linux

package mount

import "golang.org/x/sys/unix"

// futimens sets times of an open file; this system call knows microseconds only.
func futimens(fd int, _, _ int64, tv []unix.Timeval) error { return unix.Futimes(fd, tv) }
