package service

import (
	"context"
	"errors"
	"fmt"

	"atoll/core/event"
	"atoll/core/llm"
	"atoll/core/permission"
	"atoll/core/session"
	"atoll/core/store"
	"atoll/core/tool"
)

// ExitCode is how a program that runs a turn ends. The values are part of the interface: scripts test them.
type ExitCode int

// The exit codes that the core decides.
const (
	ExitOK          ExitCode = 0
	ExitFailure     ExitCode = 1
	ExitUsage       ExitCode = 2
	ExitPermission  ExitCode = 3 // a permission was needed and nobody could be asked
	ExitLimit       ExitCode = 4 // turns, tokens, time, loop guard
	ExitSandbox     ExitCode = 5
	ExitModel       ExitCode = 6
	ExitInterrupted ExitCode = 130
)

// Error is an error with its exit code.
type Error struct {
	Code ExitCode
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Usage returns an error that is the user's to mend: ExitUsage.
func Usage(format string, args ...any) error {
	return &Error{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code for an error of any function of core.
func CodeOf(err error) ExitCode {
	var own *Error
	var model *llm.Error
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, session.ErrBadID), errors.Is(err, session.ErrNotFound),
		errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrNewer):
		return ExitUsage
	case errors.Is(err, tool.ErrUnavailable):
		return ExitSandbox
	case errors.As(err, &model):
		switch model.Kind {
		case llm.Load:
			return ExitModel
		case llm.ContextOverflow:
			return ExitLimit
		}
		return ExitFailure
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	default:
		return ExitFailure
	}
}

// codeOfTurn returns the exit code of a turn. A denial that a person could have lifted outweighs how the turn went on without
// it, but not an interruption or a journal that cannot be written.
func codeOfTurn(stop event.Stop, err error, needsUser bool) ExitCode {
	switch stop {
	case event.StopCancelled:
		return ExitInterrupted
	case event.StopStorage:
		return ExitFailure
	}
	if needsUser {
		return ExitPermission
	}
	switch stop {
	case event.StopEnd:
		return ExitOK
	case event.StopPermission:
		return ExitPermission
	case event.StopLength, event.StopContext, event.StopSteps, event.StopLoop:
		return ExitLimit
	case event.StopError:
		if code := CodeOf(err); code != ExitOK {
			return code
		}
	}
	return ExitFailure
}

// ParseMode is permission.ParseMode with a usage error.
func ParseMode(s string) (permission.Mode, error) {
	m, err := permission.ParseMode(s)
	if err != nil {
		return "", &Error{Code: ExitUsage, Err: err}
	}
	return m, nil
}
