package mount

import "sync"

// Quota counts what one call writes and creates. The zero value allows nothing.
type Quota struct {
	mu        sync.Mutex
	bytes     int64
	files     int
	hitBytes  bool
	hitFiles  bool
	usedBytes int64
}

// NewQuota allows that many written bytes and created files.
func NewQuota(bytes int64, files int) *Quota {
	return &Quota{bytes: bytes, files: files}
}

// takeBytes reserves up to n bytes and returns how many were left.
func (q *Quota) takeBytes(n int64) int64 {
	if q == nil || n <= 0 {
		return max(n, 0)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > q.bytes {
		q.hitBytes = true
		n = q.bytes
	}
	q.bytes -= n
	q.usedBytes += n
	return n
}

// takeAll reserves n bytes, or none.
func (q *Quota) takeAll(n int64) bool {
	if q == nil || n <= 0 {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > q.bytes {
		q.hitBytes = true
		return false
	}
	q.bytes -= n
	q.usedBytes += n
	return true
}

// giveBytes returns bytes that were reserved and not written.
func (q *Quota) giveBytes(n int64) {
	if q == nil || n <= 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes += n
	q.usedBytes -= n
}

// takeFile reserves one new name.
func (q *Quota) takeFile() bool {
	if q == nil {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.files <= 0 {
		q.hitFiles = true
		return false
	}
	q.files--
	return true
}

func (q *Quota) giveFile() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.files++
}

// Hit reports which limits stopped the guest: "written_bytes", "files", or "".
func (q *Quota) Hit() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.hitBytes:
		return "written_bytes"
	case q.hitFiles:
		return "files"
	}
	return ""
}

// Written returns the bytes written so far.
func (q *Quota) Written() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.usedBytes
}
