package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"atoll/inference/tinymodel"
)

// TestCancelKeepsTheCacheRight cancels at many places and compares what follows with
// an engine that was never cancelled.
func TestCancelKeepsTheCacheRight(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier, func(t *testing.T) {
			path := tiny(t, tinymodel.Options{})
			e := open(t, Options{Path: path, Threads: 2, Batch: 32, Tier: tier})
			want, _ := generate(t, e, Request{Tokens: prompt(200, 1), MaxTokens: 20, IgnoreEOG: true, Fresh: true})
			for at := range 20 {
				ctx, cancel := context.WithCancel(context.Background())
				n := 0
				step := func() {
					if n++; n == at+1 {
						cancel()
					}
				}
				res, err := e.Generate(ctx, Request{
					Tokens: prompt(200, 1), MaxTokens: 20, IgnoreEOG: true, Fresh: at%2 == 0,
					Progress: func(int, int) error { step(); return nil },
				}, func(Token) error { step(); return nil })
				cancel()
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("cancelled at step %d: error %v", at, err)
				}
				if len(res.Output) > 0 && !slices.Equal(res.Output, want.Output[:len(res.Output)]) {
					t.Errorf("cancelled at step %d: wrote %v", at, res.Output)
				}
				got, _ := generate(t, e, Request{Tokens: prompt(200, 1), MaxTokens: 20, IgnoreEOG: true})
				if !slices.Equal(got.Output, want.Output) {
					t.Fatalf("after a cancel at step %d: %v, want %v", at, got.Output, want.Output)
				}
			}
		})
	}
}

// TestRequestsTakeTurns runs requests from several goroutines; each must get what it
// would get alone. One more waits and is cancelled.
func TestRequestsTakeTurns(t *testing.T) {
	e := open(t, Options{Path: tiny(t, tinymodel.Options{}), Threads: 2})
	var want [4][]int32
	for i := range want {
		res, _ := generate(t, e, Request{Tokens: prompt(50, i), MaxTokens: 10, IgnoreEOG: true, Fresh: true})
		want[i] = res.Output
	}
	var wg sync.WaitGroup
	for i := range want {
		wg.Go(func() {
			for range 3 {
				res, err := e.Generate(context.Background(), Request{Tokens: prompt(50, i), MaxTokens: 10, IgnoreEOG: true}, func(Token) error { return nil })
				if err != nil || !slices.Equal(res.Output, want[i]) {
					t.Errorf("request %d: %v, %v", i, res.Output, err)
				}
			}
		})
	}
	wg.Wait()

	inside, leave := make(chan struct{}), make(chan struct{})
	wg.Go(func() {
		first := true
		_, _ = e.Generate(context.Background(), Request{Tokens: prompt(5, 1), MaxTokens: 2, IgnoreEOG: true}, func(Token) error {
			if first {
				first = false
				close(inside)
				<-leave
			}
			return nil
		})
	})
	<-inside
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Evaluate(ctx, prompt(5, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a waiting request that was cancelled: %v", err)
	}
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	select {
	case err := <-closed:
		t.Errorf("Close did not wait: %v", err)
	default:
	}
	close(leave)
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	wg.Wait()
	if _, err := e.Generate(context.Background(), Request{Tokens: prompt(5, 1)}, func(Token) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestCancelDuringPrefill cancels while a long batch of a real model is evaluated. How
// long it takes is logged, and the test fails only if the batch ran to its end.
func TestCancelDuringPrefill(t *testing.T) {
	e := open(t, Options{Path: realModel(t, smollm2), Ctx: 4096})
	ids := make([]int32, 4000)
	for i := range ids {
		ids[i] = int32(1000 + i*17%20000)
	}
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		started := make(chan struct{})
		var once sync.Once
		cancelled := make(chan time.Time, 1)
		go func() {
			<-started
			cancelled <- time.Now()
			cancel()
		}()
		reached := 0
		_, err := e.Generate(ctx, Request{Tokens: ids, Fresh: true, Progress: func(done, _ int) error {
			once.Do(func() { close(started) })
			reached = done
			return nil
		}}, func(Token) error { return nil })
		t.Logf("ended %v after the cancel, at token %d", time.Since(<-cancelled), reached)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		if reached == len(ids) {
			t.Error("the whole prompt was evaluated")
		}
	}
}
