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

// pool runs one task at a time on the caller and on those of its n-1 workers,
// locked to operating system threads, that come in time. A worker that the system
// has put aside is not waited for: the others do its share.
type pool struct {
	n    int
	task func(worker int)

	// state is the number of the task in the upper bits, then taskOpen while workers
	// may join it, then the number of workers that have joined.
	state    atomic.Uint64
	finished atomic.Int32 // workers that joined the task and are done
	parked   atomic.Int32 // workers asleep or about to sleep on wake
	waiting  atomic.Bool  // the caller is asleep on done, or about to be
	closed   atomic.Bool
	ended    sync.WaitGroup

	// mu guards no data: it only makes sleeping and waking atomic. No task runs
	// under it.
	mu         sync.Mutex
	wake, done sync.Cond
}

const (
	taskShift  = 16
	taskOpen   = 1 << (taskShift - 1)
	taskJoined = taskOpen - 1
)

func newPool(n int) *pool {
	p := &pool{n: n}
	p.wake.L, p.done.L = &p.mu, &p.mu
	for w := 1; w < n; w++ {
		p.ended.Add(1)
		go p.work(w)
	}
	return p
}

// run calls task(0) and, at the same time, task(w) for the workers w that join, and
// returns when all of them have returned. Task must divide the work by itself.
func (p *pool) run(task func(worker int)) {
	if p.n == 1 {
		task(0)
		return
	}
	p.task = task
	p.finished.Store(0)
	p.state.Store((p.state.Load()>>taskShift+1)<<taskShift | taskOpen)
	if p.parked.Load() > 0 {
		p.mu.Lock()
		p.wake.Broadcast()
		p.mu.Unlock()
	}
	task(0)
	joined := int32(p.state.And(^uint64(taskOpen)) & taskJoined)
	if !spin(func() bool { return p.finished.Load() == joined }) {
		p.mu.Lock()
		p.waiting.Store(true)
		for p.finished.Load() != joined {
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
	seen := uint64(0) // number of the last task
	fresh := func() bool {
		s := p.state.Load()
		return s&taskOpen != 0 && s>>taskShift != seen || p.closed.Load()
	}
	for {
		if !spin(fresh) {
			p.mu.Lock()
			p.parked.Add(1)
			for !fresh() {
				p.wake.Wait()
			}
			p.parked.Add(-1)
			p.mu.Unlock()
		}
		if p.closed.Load() {
			return
		}
		s := p.state.Load()
		if s&taskOpen == 0 || !p.state.CompareAndSwap(s, s+1) {
			continue
		}
		seen = s >> taskShift
		p.task(w)
		p.finished.Add(1)
		if p.waiting.Load() {
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
