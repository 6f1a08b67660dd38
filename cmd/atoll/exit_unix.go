//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func notifyPipe(ch chan<- os.Signal) { signal.Notify(ch, syscall.SIGPIPE) }

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
