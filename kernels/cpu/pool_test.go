//go:build amd64 && !purego

package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestPoolRunsEveryWorkerOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		p := newPool(n)
		counts := make([]int, n) // without atomics: -race proves the hand-over
		for range 2000 {
			p.run(func(w int) { counts[w]++ })
		}
		p.close()
		for w, c := range counts {
			if c != 2000 {
				t.Errorf("%d workers: worker %d ran %d of 2000 tasks", n, w, c)
			}
		}
	}
}

// TestPoolSleepsAndWakes waits until all workers are parked before each task.
func TestPoolSleepsAndWakes(t *testing.T) {
	p := newPool(3)
	var sum atomic.Int64
	for range 50 {
		for p.parked.Load() != 2 {
			runtime.Gosched()
		}
		p.run(func(w int) { sum.Add(int64(w)) })
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
		done := false
		p.run(func(w int) {
			if w == 1 {
				for !p.waiting.Load() {
					runtime.Gosched()
				}
				done = true
			}
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
