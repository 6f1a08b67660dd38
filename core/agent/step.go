package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"atoll/core/event"
	"atoll/core/llm"
	"atoll/core/message"
)

// step is a model step while it streams.
type step struct {
	t     *turn
	id    string // of the assistant message; "" until the first chunk
	text  strings.Builder
	calls []call
	err   error // of the journal
}

// call is a tool call that the model made.
type call struct {
	id    string
	name  string
	input json.RawMessage
	raw   string // set where the call could not be understood
	// reason says what is wrong with raw.
	reason string
}

// model runs one model step.
func (t *turn) model() phase {
	s := t.opts.Session
	st := &step{t: t}
	t.out.Steps++
	res, err := t.opts.Model.Generate(t.ctx, t.req, st.chunk)
	if st.err != nil {
		return t.fail(st.err)
	}
	if err != nil {
		return t.stepFailed(st, err)
	}
	if err := st.open(); err != nil {
		return t.fail(err)
	}
	t.out.Usage = t.out.Usage.Add(res.Usage)
	if err := s.Emit(event.StepFinished{Message: st.id, Stop: string(res.Stop), Usage: res.Usage}); err != nil {
		return t.fail(err)
	}
	t.out.Text = st.text.String()
	t.calls = st.calls
	switch {
	case res.Stop == llm.StopContext:
		if err := s.Emit(event.ContextOverflow{Prompt: res.Usage.Prompt + res.Usage.Output, Max: t.opts.Model.Info().Context}); err != nil {
			return t.fail(err)
		}
		t.out.Stop = event.StopContext
		t.out.Err = &llm.Error{Kind: llm.ContextOverflow, Message: "the context window is full"}
		return t.drop("not run: the context window is full")
	case res.Stop == llm.StopRefusal:
		t.out.Stop = event.StopRefusal
		return t.drop("not run: the model stopped")
	case len(st.calls) > 0:
		return tools
	case res.Stop == llm.StopLength:
		t.out.Stop = event.StopLength
		return finish
	}
	return t.answered()
}

// answered ends the turn with the model's answer, or nudges it on.
func (t *turn) answered() phase {
	empty := strings.TrimSpace(t.out.Text) == ""
	if t.opts.Nudge && !t.nudged {
		if text, choice := t.nudge(); text != "" {
			t.nudged, t.choice = true, choice
			nudge := message.Message{
				ID: t.opts.Session.NextMessageID(), Role: message.User,
				Parts: []message.Part{message.Text{Text: text, Synthetic: true}},
			}
			if err := t.opts.Session.Emit(event.MessageStarted{Message: nudge}); err != nil {
				return t.fail(err)
			}
			return prepare
		}
	}
	if empty {
		t.out.Stop, t.out.Err = event.StopEmpty, errEmpty
		return finish
	}
	t.out.Stop = event.StopEnd
	return finish
}

var errEmpty = errors.New("the model answered nothing")

// stepFailed ends the turn after Generate returned an error. A message that was begun is kept and marked.
func (t *turn) stepFailed(st *step, err error) phase {
	s := t.opts.Session
	reason := "error"
	if t.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		reason = "cancelled"
	}
	if st.id != "" {
		t.out.Text = st.text.String()
		closing := make([]event.Body, 0, len(st.calls)+1)
		for _, c := range st.calls {
			closing = append(closing, event.ToolResult{CallID: c.id, Name: c.name, IsError: true, Output: "not run: the step did not end"})
		}
		if err := s.Emit(append(closing, event.MessageAborted{Message: st.id, Reason: reason})...); err != nil {
			return t.fail(err)
		}
	}
	if reason == "cancelled" {
		return t.cancelled()
	}
	var le *llm.Error
	if errors.As(err, &le) && le.Kind == llm.ContextOverflow {
		if err := s.Emit(event.ContextOverflow{Prompt: le.Prompt, Max: le.Max}); err != nil {
			return t.fail(err)
		}
		t.out.Stop, t.out.Err = event.StopContext, err
		return finish
	}
	t.out.Stop, t.out.Err = event.StopError, err
	return finish
}

// open starts the assistant message unless that is done.
func (st *step) open() error {
	if st.id != "" {
		return nil
	}
	s := st.t.opts.Session
	id := s.NextMessageID()
	err := s.Emit(
		event.MessageStarted{Message: message.Message{ID: id, Role: message.Assistant}},
		event.StepStarted{Message: id, Step: st.t.out.Steps, Model: st.t.opts.Model.Info().ID},
	)
	if err != nil {
		return err
	}
	st.id = id
	return nil
}

// chunk takes one chunk of the stream.
func (st *step) chunk(c llm.Chunk) error {
	if err := st.take(c); err != nil {
		st.err = err
		return err
	}
	return nil
}

func (st *step) take(c llm.Chunk) error {
	s := st.t.opts.Session
	if p, ok := c.(llm.Progress); ok {
		s.Live(event.Progress{Done: p.Done, Total: p.Total})
		return nil
	}
	// A message begins with its first chunk: a step that fails at once leaves no trace.
	if err := st.open(); err != nil {
		return err
	}
	switch c := c.(type) {
	case llm.TextDelta:
		text := strings.ToValidUTF8(c.Text, "\ufffd")
		st.text.WriteString(text)
		return s.Stream(event.TextDelta{Message: st.id, Text: text})
	case llm.ReasoningDelta:
		return s.Stream(event.ReasoningDelta{Message: st.id, Text: strings.ToValidUTF8(c.Text, "\ufffd")})
	case llm.ToolInputDelta:
		s.Live(event.ToolInputDelta{Message: st.id, Index: c.Index, Name: c.Name, Delta: c.Delta})
		return nil
	case llm.ToolCall:
		return st.add(call{name: c.Name, input: c.Arguments})
	case llm.ToolCallError:
		return st.add(call{name: c.Name, raw: strings.ToValidUTF8(c.Raw, "\ufffd"), reason: c.Reason})
	}
	return nil
}

func (st *step) add(c call) error {
	if c.raw == "" {
		// Compact, as the journal gives it back.
		var b bytes.Buffer
		if err := json.Compact(&b, c.input); err != nil {
			c.raw, c.input, c.reason = strings.ToValidUTF8(string(c.input), "\ufffd"), nil, "the arguments are not valid JSON"
		} else {
			c.input = b.Bytes()
		}
	}
	if c.raw != "" {
		c.input = json.RawMessage("{}")
	}
	s := st.t.opts.Session
	c.id = s.NextCallID()
	st.calls = append(st.calls, c)
	return s.Emit(event.ToolCall{Message: st.id, CallID: c.id, Name: c.name, Input: c.input, Raw: c.raw})
}
