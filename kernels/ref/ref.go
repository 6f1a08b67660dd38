// Package ref is the plain-Go backend: the specification of every operation, and
// the one that runs where there is no assembly for the processor.
//
// Weights are used in place, in the blocks of the model file.
package ref

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"atoll/kernels"
)

// Options sets up a backend.
type Options struct {
	Threads int // goroutines that share one operation; 0 means one per usable core
}

// Backend implements [kernels.Backend].
type Backend struct {
	threads int
	stop    *atomic.Bool
}

var _ kernels.Backend = (*Backend)(nil)

// New returns a backend; it holds no resources but memory.
func New(o Options) *Backend {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	return &Backend{threads: o.Threads}
}

// Info implements the same method as documented on kernels.Backend.
func (b *Backend) Info() kernels.Info {
	return kernels.Info{Name: "ref", Tier: "generic", Threads: b.threads, Reason: "plain Go"}
}

type buffer []float32

// Len implements the same method as documented on kernels.Buffer.
func (b buffer) Len() int { return len(b) }

// NewBuffer implements the same method as documented on kernels.Backend.
func (b *Backend) NewBuffer(n int) (kernels.Buffer, error) {
	check(n >= 0, "buffer of %d values", n)
	return make(buffer, n), nil
}

// Slice implements the same method as documented on kernels.Backend.
func (b *Backend) Slice(x kernels.Buffer, off, n int) kernels.Buffer {
	return x.(buffer)[off : off+n : off+n]
}

// Write implements the same method as documented on kernels.Backend.
func (b *Backend) Write(dst kernels.Buffer, off int, src []float32) {
	d := dst.(buffer)
	check(off >= 0 && off+len(src) <= len(d), "write of %d values at %d to %d", len(src), off, len(d))
	copy(d[off:], src)
}

// Read implements the same method as documented on kernels.Backend.
func (b *Backend) Read(dst []float32, src kernels.Buffer, off int) error {
	s := src.(buffer)
	check(off >= 0 && off+len(dst) <= len(s), "read of %d values at %d from %d", len(dst), off, len(s))
	copy(dst, s[off:])
	return nil
}

// SetStop implements the same method as documented on kernels.Backend.
func (b *Backend) SetStop(stop *atomic.Bool) { b.stop = stop }

// Close implements the same method as documented on kernels.Backend.
func (b *Backend) Close() error { return nil }

func (b *Backend) stopped() bool { return b.stop != nil && b.stop.Load() }

// share calls f for the items 0..n, each once, on up to b.threads goroutines, and
// gives up between items when the backend is stopped. f gets the number of its
// goroutine as well.
func (b *Backend) share(n int, f func(worker, item int)) {
	var next atomic.Int64
	run := func(worker int) {
		for !b.stopped() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			f(worker, i)
		}
	}
	var wg sync.WaitGroup
	for w := 1; w < min(b.threads, n); w++ {
		wg.Go(func() { run(w) })
	}
	run(0)
	wg.Wait()
}

// check panics when a caller broke the contract of an operation.
func check(ok bool, format string, args ...any) {
	if !ok {
		panic("BUG: kernels: " + fmt.Sprintf(format, args...))
	}
}
