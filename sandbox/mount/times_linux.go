package mount

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// futimens sets times of an open file at nanosecond precision: utimensat with a descriptor and no path.
func futimens(fd int, atim, mtim int64, _ []unix.Timeval) error {
	ts := [2]unix.Timespec{unix.NsecToTimespec(atim), unix.NsecToTimespec(mtim)}
	_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}
