package main

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

func notifyPipe(chan<- os.Signal) {}

func isBrokenPipe(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}
