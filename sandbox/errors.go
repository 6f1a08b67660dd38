package sandbox

import (
	"errors"
	"fmt"
)

var (
	// ErrUnavailable means that the sandbox, or a part of it that this module needs, cannot be had here. Nothing ran.
	ErrUnavailable = errors.New("sandbox unavailable")
	// ErrNotGranted means that a module asks for more than it was granted. Nothing ran.
	ErrNotGranted = errors.New("not granted")
	// ErrModule means that a module is not one that can run: malformed, not a command, or with a bad manifest.
	ErrModule = errors.New("unusable module")
)

// errNoWorker is the answer to a module of a third party.
var errNoWorker error = unavailable("sandbox: needs a worker process, not available in this version; pass --one-wall")

type unavailable string

func (e unavailable) Error() string        { return string(e) }
func (e unavailable) Is(target error) bool { return target == ErrUnavailable }

// NotGrantedError names the import that a module was not granted. It is an ErrNotGranted.
type NotGrantedError struct{ Module, Name, Kind string }

func (e *NotGrantedError) Error() string {
	return fmt.Sprintf("imports %s %q of %q: not granted", e.Kind, e.Name, e.Module)
}

// Is makes errors.Is(err, ErrNotGranted) hold.
func (e *NotGrantedError) Is(target error) bool { return target == ErrNotGranted }

// LimitError says that a limit ended a call, or kept it from starting.
type LimitError struct {
	// Which is the limit's name as in a manifest: "wall" or "memory_pages".
	Which string
	// Limit is its value in words.
	Limit string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("limit %s of %s reached", e.Which, e.Limit)
}

// TrapError says that a guest did something that has no meaning, such as dividing by zero or calling itself without
// end.
type TrapError struct {
	// Reason is one line.
	Reason string
	// Err is the engine's error, with the guest's stack where it has names.
	Err error
}

func (e *TrapError) Error() string { return "trap: " + e.Reason }

func (e *TrapError) Unwrap() error { return e.Err }
