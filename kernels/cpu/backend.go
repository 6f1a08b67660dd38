//go:build amd64 && !purego

package cpu

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"atoll/kernels"
)

// backend implements kernels.Backend.
type backend struct {
	tier   *tier
	reason string
	pool   *pool
	arena  arena
	stop   *atomic.Bool
	closed bool

	xq      []byte    // quantised activations of the product being computed
	zeros   []float32 // a column of zeros, to fill up panels
	scratch []scratch // by worker
}

var _ kernels.Backend = (*backend)(nil)

// scratch is what one worker needs for itself.
type scratch struct {
	wq     []byte    // unpacked tiles
	scales []float32 // and their scales
	out    []float32 // results of a tile that is not full
	attn   attnScratch
	_      [64]byte // keeps workers' headers on lines of their own
}

// New opens the backend.
func New(o Options) (kernels.Backend, error) {
	t, reason, err := pickTier(o.Tier)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Threads < 0:
		return nil, fmt.Errorf("open cpu backend: %d threads", o.Threads)
	case o.Threads == 0:
		o.Threads = runtime.GOMAXPROCS(0)
	}
	b := &backend{tier: t, reason: reason, pool: newPool(o.Threads), scratch: make([]scratch, o.Threads)}
	for i := range b.scratch {
		b.scratch[i].out = aligned(12 * tileRows)
	}
	return b, nil
}

// Info implements the same method as documented on kernels.Backend.
func (b *backend) Info() kernels.Info {
	return kernels.Info{Name: "cpu", Tier: b.tier.name, Threads: b.pool.n, Reason: b.reason}
}

type buffer []float32

// Len implements the same method as documented on kernels.Buffer.
func (x buffer) Len() int { return len(x) }

// NewBuffer implements the same method as documented on kernels.Backend.
func (b *backend) NewBuffer(n int) (kernels.Buffer, error) {
	check(n >= 0, "buffer of %d values", n)
	return buffer(aligned(n)), nil
}

// Slice implements the same method as documented on kernels.Backend.
func (b *backend) Slice(x kernels.Buffer, off, n int) kernels.Buffer {
	s := x.(buffer)
	check(off >= 0 && n >= 0 && off+n <= len(s), "slice of %d values at %d from %d", n, off, len(s))
	return s[off : off+n : off+n]
}

// Write implements the same method as documented on kernels.Backend.
func (b *backend) Write(dst kernels.Buffer, off int, src []float32) {
	d := dst.(buffer)
	check(off >= 0 && off+len(src) <= len(d), "write of %d values at %d to %d", len(src), off, len(d))
	copy(d[off:], src)
}

// Read implements the same method as documented on kernels.Backend.
func (b *backend) Read(dst []float32, src kernels.Buffer, off int) error {
	s := src.(buffer)
	check(off >= 0 && off+len(dst) <= len(s), "read of %d values at %d from %d", len(dst), off, len(s))
	copy(dst, s[off:])
	return nil
}

// SetStop implements the same method as documented on kernels.Backend.
func (b *backend) SetStop(stop *atomic.Bool) { b.stop = stop }

func (b *backend) stopped() bool { return b.stop != nil && b.stop.Load() }

// Close implements the same method as documented on kernels.Backend.
func (b *backend) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	b.pool.close()
	b.xq, b.scratch = nil, nil
	if err := b.arena.release(); err != nil {
		return fmt.Errorf("close cpu backend: %w", err)
	}
	return nil
}

// share calls f for the items 0..n, each once, in order of their start, and gives up
// between items when the backend is stopped.
func (b *backend) share(n int, f func(worker, item int)) {
	if n == 1 || b.pool.n == 1 {
		for i := 0; i < n && !b.stopped(); i++ {
			f(0, i)
		}
		return
	}
	var next atomic.Int64
	b.pool.run(func(worker int) {
		for !b.stopped() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			f(worker, i)
		}
	})
}

// check panics when a caller broke the contract of an operation.
func check(ok bool, format string, args ...any) {
	if !ok {
		panic("BUG: kernels: " + fmt.Sprintf(format, args...))
	}
}

var errClosed = errors.New("backend is closed")
