//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func notifyPipe(ch chan<- os.Signal) { signal.Notify(ch, syscall.SIGPIPE) }

func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// writable reports why a directory cannot be written, if so.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
