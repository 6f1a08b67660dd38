//go:build amd64 && !purego

package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// together returns a task that ends when all n workers have joined it.
func together(n int, f func(w int)) func(w int) {
	var joined atomic.Int32
	return func(w int) {
		f(w)
		joined.Add(1)
		for joined.Load() != int32(n) {
			runtime.Gosched()
		}
	}
}

func TestPoolRunsTaskOnEachWorkerOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		p := newPool(n)
		counts := make([]int, n) // without atomics: -race proves the hand-over
		for range 500 {
			p.run(together(n, func(w int) { counts[w]++ }))
		}
		p.close()
		for w, c := range counts {
			if c != 500 {
				t.Errorf("%d workers: worker %d ran %d of 500 tasks", n, w, c)
			}
		}
	}
}

// TestPoolDoesNotWaitForAbsentWorkers runs short tasks that workers join or miss;
// none may run after run has returned, and no worker twice.
func TestPoolDoesNotWaitForAbsentWorkers(t *testing.T) {
	p := newPool(4)
	for i := range 20000 {
		var ran [4]atomic.Int32
		over := new(atomic.Bool)
		p.run(func(w int) {
			if over.Load() {
				t.Errorf("task %d ran on worker %d after its end", i, w)
			}
			ran[w].Add(1)
		})
		over.Store(true)
		if ran[0].Load() != 1 {
			t.Fatal("the caller did not run the task once")
		}
		for w := range ran {
			if ran[w].Load() > 1 {
				t.Fatalf("worker %d ran task %d twice", w, i)
			}
		}
	}
	p.close()
}

// TestPoolSleepsAndWakes waits until all workers are parked before each task.
func TestPoolSleepsAndWakes(t *testing.T) {
	p := newPool(3)
	var sum atomic.Int64
	for range 50 {
		for p.parked.Load() != 2 {
			runtime.Gosched()
		}
		p.run(together(3, func(w int) { sum.Add(int64(w)) }))
	}
	p.close()
	if sum.Load() != 50*3 {
		t.Errorf("sum %d, want 150", sum.Load())
	}
}

// TestPoolCallerSleeps has a task that outlasts the spinning of the caller.
func TestPoolCallerSleeps(t *testing.T) {
	p := newPool(2)
	defer p.close()
	for range 20 {
		done, joined := false, make(chan bool)
		p.run(func(w int) {
			if w == 0 {
				<-joined
				return
			}
			close(joined)
			for !p.waiting.Load() {
				runtime.Gosched()
			}
			done = true
		})
		if !done {
			t.Fatal("run returned before its task ended")
		}
	}
}

func TestShareTakesEachItemOnce(t *testing.T) {
	b := &backend{pool: newPool(3)}
	defer b.pool.close()
	for _, n := range []int{0, 1, 2, 1000} {
		taken := make([]atomic.Int32, n)
		b.share(n, func(_, item int) { taken[item].Add(1) })
		for i := range taken {
			if taken[i].Load() != 1 {
				t.Fatalf("item %d of %d was taken %d times", i, n, taken[i].Load())
			}
		}
	}
	var stop atomic.Bool
	stop.Store(true)
	b.SetStop(&stop)
	b.share(100, func(int, int) { t.Error("an item was taken although the backend is stopped") })
}
