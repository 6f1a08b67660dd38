package modelstore

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock of f, which closing it gives back, unless somebody
// else holds it.
func tryLock(f *os.File) (taken bool, err error) {
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
