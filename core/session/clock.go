package session

import "time"

// Clock is the time that a session sees.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on its own goroutine after d. stop keeps a call that has not begun from happening.
	AfterFunc(d time.Duration, f func()) (stop func())
}

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now implements Clock.
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc implements Clock.
func (SystemClock) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}
