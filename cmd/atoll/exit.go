package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"atoll/core/service"
)

// Exit codes: those of the core as numbers, and two that only a process has.
const (
	exitOK          = int(service.ExitOK)
	exitFailure     = int(service.ExitFailure)
	exitUsage       = int(service.ExitUsage)
	exitPermission  = int(service.ExitPermission)
	exitLimit       = int(service.ExitLimit)
	exitModel       = int(service.ExitModel)
	exitInterrupted = int(service.ExitInterrupted)
	exitPipe        = 141 // the reader of standard output went away
	exitTerminated  = 143
)

func usagef(format string, args ...any) error { return service.Usage(format, args...) }

// withCode gives an error that has no code one.
func withCode(code int, err error) error {
	var own *service.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return &service.Error{Code: service.ExitCode(code), Err: err}
}

// errQuiet marks an error that was already shown.
type errQuiet struct{ code int }

func (e *errQuiet) Error() string { return fmt.Sprintf("exit code %d", e.code) }
func (e *errQuiet) ExitCode() int { return e.code }

// stopCause is why the process was asked to stop; it is the cause of the
// program's context.
type stopCause struct {
	text string
	code int
}

func (e *stopCause) Error() string { return e.text }
func (e *stopCause) ExitCode() int { return e.code }

// exitCode returns the code of an error. A stopped process ends with the code of
// what stopped it, whatever error that led to.
func exitCode(ctx context.Context, err error) int {
	var stop *stopCause
	if errors.As(context.Cause(ctx), &stop) {
		return stop.code
	}
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.ExitCode()
	}
	return int(service.CodeOf(err))
}

// stopTime is what the program has for its end after a signal. What blocks longer,
// such as the opening of a FIFO that nobody writes to, is left as it is.
const stopTime = 5 * time.Second

// signals turns signals into the end of a context. The first one is a request:
// the turn stops and the session is closed. The second, or stopTime, ends the
// process at once; the journal is made for that.
type signals struct {
	ch, pipe chan os.Signal
	done     chan struct{}

	mu   sync.Mutex // guards turn
	turn func()     // set: an interrupt ends only this
}

func watchSignals(ctx context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &signals{ch: make(chan os.Signal, 4), pipe: make(chan os.Signal, 1), done: make(chan struct{})}
	signal.Notify(s.ch, os.Interrupt, syscall.SIGTERM)
	// A write to a closed pipe must come back as an error instead of ending the
	// process; nobody needs to receive this one.
	notifyPipe(s.pipe)
	go func() {
		stopping := false
		for {
			select {
			case sig := <-s.ch:
				cause := &stopCause{"interrupted", exitInterrupted}
				if sig == syscall.SIGTERM {
					cause = &stopCause{"terminated", exitTerminated}
				} else if s.endTurn() {
					continue
				}
				if stopping {
					os.Exit(cause.code)
				}
				stopping = true
				cancel(cause)
				time.AfterFunc(stopTime, func() {
					select {
					case <-s.done: // it is about to end by itself
					default:
						os.Exit(cause.code)
					}
				})
			case <-s.done:
				cancel(nil)
				return
			}
		}
	}()
	return ctx, s
}

func (s *signals) stop() {
	signal.Stop(s.ch)
	signal.Stop(s.pipe)
	close(s.done)
}

// intercept makes the next interrupt end one turn instead of the program.
func (s *signals) intercept(turn func()) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = turn
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.turn = nil
	}
}

func (s *signals) endTurn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == nil {
		return false
	}
	s.turn()
	s.turn = nil
	return true
}

// inlet is standard input. A read ends with ctx, which a blocked one of the
// operating system does not: a goroutine makes it, and is left behind.
type inlet struct {
	ctx context.Context
	r   io.Reader
}

func (in *inlet) Read(p []byte) (int, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b := make([]byte, len(p))
		n, err := in.r.Read(b)
		done <- result{b[:n], err}
	}()
	select {
	case r := <-done:
		return copy(p, r.b), r.err
	case <-in.ctx.Done():
		return 0, context.Cause(in.ctx)
	}
}

// outlet is standard output. When its reader goes away it stops the program:
// what comes after is dropped, and nothing is complained about.
type outlet struct {
	w    io.Writer
	stop context.CancelCauseFunc

	mu     sync.Mutex // guards broken; held while writing so that lines stay whole
	broken bool
}

func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken {
		return len(p), nil
	}
	n, err := o.w.Write(p)
	if err == nil {
		return n, nil
	}
	if isBrokenPipe(err) {
		o.broken = true
		o.stop(&stopCause{"the reader of standard output went away", exitPipe})
		return len(p), nil
	}
	return n, err
}
