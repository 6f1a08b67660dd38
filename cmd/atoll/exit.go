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
)

// Exit codes. They are part of the interface: scripts test them.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitPermission  = 3 // a permission was needed and nobody could be asked
	exitLimit       = 4 // turns, tokens, time, loop guard
	exitSandbox     = 5
	exitModel       = 6
	exitInterrupted = 130
	exitPipe        = 141 // the reader of standard output went away
	exitTerminated  = 143
)

// exitError is an error that decides the exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is how errors of the core tell theirs, too.
func (e *exitError) ExitCode() int { return e.code }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// withCode gives an error that has no code one.
func withCode(code int, err error) error {
	var coded interface{ ExitCode() int }
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return &exitError{code, err}
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
	return exitFailure
}

// watchSignals ends ctx when the process is told to stop. The first signal is a
// request: the turn stops and the session is closed. The second ends the process
// at once; the journal is made for that.
func watchSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	// A write to a closed pipe must come back as an error instead of ending the
	// process; nobody needs to receive this one.
	pipe := make(chan os.Signal, 1)
	notifyPipe(pipe)
	done := make(chan struct{})
	go func() {
		stopping := false
		for {
			select {
			case s := <-ch:
				cause := &stopCause{"interrupted", exitInterrupted}
				if s == syscall.SIGTERM {
					cause = &stopCause{"terminated", exitTerminated}
				}
				if stopping {
					os.Exit(cause.code)
				}
				stopping = true
				cancel(cause)
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		signal.Stop(pipe)
		close(done)
		cancel(nil)
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
