package modelstore

import (
	"context"
	"os"
	"time"
)

// lockPoll is how often a held lock is looked at again: neither system can wait
// for one with a context.
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
		taken, err := tryLock(f)
		if taken {
			return func() { f.Close() }, nil
		}
		if err == nil {
			if first {
				waiting()
			}
			err = wait(ctx, lockPoll)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
	}
}
