//go:build unix

package modelstore

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often a held lock is looked at again. flock itself cannot be
// waited for with a context.
const lockPoll = 200 * time.Millisecond

// lockFile takes the lock of that name and returns what releases it. waiting is
// called once if somebody else holds it. The file stays: removing it would let
// two processes hold two locks of one name.
func lockFile(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, err
		}
		if first {
			waiting()
		}
		if err := wait(ctx, lockPoll); err != nil {
			f.Close()
			return nil, err
		}
	}
}
