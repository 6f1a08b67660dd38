//go:build unix

package modelstore

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of f, which closing it gives back, unless somebody
// else holds it.
func tryLock(f *os.File) (taken bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
