//go:build amd64 && !purego

package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// How long a worker without work, or a caller without result, spins before it
// sleeps. Between two operations of a token there are some microseconds.
const (
	spinTime  = 50 * time.Microsecond
	spinTurns = 8 // pauses between two looks at the clock
)

// pool runs one task at a time on the caller and n-1 workers, which are locked to
// operating system threads.
type pool struct {
	n       int
	task    func(worker int)
	seq     atomic.Uint32 // counts tasks; a worker that sees it change runs task
	pending atomic.Int32  // workers that have not finished the task
	parked  atomic.Int32  // workers asleep or about to sleep on wake
	waiting atomic.Bool   // the caller is asleep on done, or about to be
	closed  atomic.Bool
	ended   sync.WaitGroup

	// mu guards no data: it only makes sleeping and waking atomic. No task runs
	// under it.
	mu         sync.Mutex
	wake, done sync.Cond
}

func newPool(n int) *pool {
	p := &pool{n: n}
	p.wake.L, p.done.L = &p.mu, &p.mu
	for w := 1; w < n; w++ {
		p.ended.Add(1)
		go p.work(w)
	}
	return p
}

// run calls task once for each worker number 0..n and returns when all are done.
func (p *pool) run(task func(worker int)) {
	if p.n == 1 {
		task(0)
		return
	}
	p.task = task
	p.pending.Store(int32(p.n - 1))
	p.seq.Add(1)
	if p.parked.Load() > 0 {
		p.mu.Lock()
		p.wake.Broadcast()
		p.mu.Unlock()
	}
	task(0)
	if !spin(func() bool { return p.pending.Load() == 0 }) {
		p.mu.Lock()
		p.waiting.Store(true)
		for p.pending.Load() != 0 {
			p.done.Wait()
		}
		p.waiting.Store(false)
		p.mu.Unlock()
	}
	p.task = nil
}

func (p *pool) work(w int) {
	defer p.ended.Done()
	runtime.LockOSThread()
	seen := uint32(0)
	for {
		if !spin(func() bool { return p.seq.Load() != seen || p.closed.Load() }) {
			p.mu.Lock()
			p.parked.Add(1)
			for p.seq.Load() == seen && !p.closed.Load() {
				p.wake.Wait()
			}
			p.parked.Add(-1)
			p.mu.Unlock()
		}
		if p.closed.Load() {
			return
		}
		seen++
		p.task(w)
		if p.pending.Add(-1) == 0 && p.waiting.Load() {
			p.mu.Lock()
			p.done.Signal()
			p.mu.Unlock()
		}
	}
}

// close ends the workers and waits for them. No task may be running.
func (p *pool) close() {
	p.closed.Store(true)
	p.mu.Lock()
	p.wake.Broadcast()
	p.mu.Unlock()
	p.ended.Wait()
}

// spin waits for a short time until ready and reports whether it was.
func spin(ready func() bool) bool {
	if ready() {
		return true
	}
	start := time.Now()
	for {
		for range spinTurns {
			pause(1)
			if ready() {
				return true
			}
		}
		if time.Since(start) > spinTime {
			return false
		}
	}
}
