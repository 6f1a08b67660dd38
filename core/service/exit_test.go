package service

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"atoll/core/event"
	"atoll/core/llm"
	"atoll/core/session"
	"atoll/core/store"
	"atoll/core/tool"
)

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want ExitCode
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{Usage("x"), 2},
		{session.ErrBadID, 2}, {session.ErrNotFound, 2}, {store.ErrDamaged, 2}, {store.ErrNewer, 2},
		{&session.LockedError{ID: "x"}, 1},
		{store.ErrDiskFull, 1},
		{tool.ErrUnavailable, 5},
		{&llm.Error{Kind: llm.Load}, 6}, {&llm.Error{Kind: llm.ContextOverflow}, 4}, {&llm.Error{Kind: llm.Script}, 1}, {&llm.Error{Kind: llm.Network}, 1},
		{context.Canceled, 130},
		{&Error{Code: 6, Err: context.Canceled}, 6},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
		if c.err != nil {
			if got := CodeOf(fmt.Errorf("wrapped: %w", c.err)); got != c.want {
				t.Errorf("wrapped %v: %d, want %d", c.err, got, c.want)
			}
		}
	}
}

func TestCodeOfTurn(t *testing.T) {
	for _, c := range []struct {
		stop   event.Stop
		err    error
		denied bool
		want   ExitCode
	}{
		{event.StopEnd, nil, false, 0},
		{event.StopPermission, nil, true, 3},
		{event.StopRefusal, nil, false, 1},
		{event.StopEmpty, errors.New("x"), false, 1},
		{event.StopLength, nil, false, 4}, {event.StopContext, nil, false, 4}, {event.StopSteps, nil, false, 4}, {event.StopLoop, nil, false, 4},
		{event.StopError, &llm.Error{Kind: llm.Load}, false, 6},
		{event.StopError, tool.ErrUnavailable, false, 5},
		{event.StopError, nil, false, 1},
		{event.StopStorage, store.ErrDiskFull, false, 1},
		{event.StopCancelled, context.Canceled, false, 130},
		{"", nil, false, 1},
		// A denial outweighs what came of it.
		{event.StopLoop, nil, true, 3}, {event.StopError, errors.New("x"), true, 3}, {event.StopStorage, store.ErrDiskFull, true, 1}, {event.StopCancelled, nil, true, 130},
	} {
		if got := codeOfTurn(c.stop, c.err, c.denied); got != c.want {
			t.Errorf("%s %v %v: %d, want %d", c.stop, c.err, c.denied, got, c.want)
		}
	}
}
