package session

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"atoll/core/event"
	"atoll/core/message"
)

// State is the projection of a session's events. The zero State is that of a session without events.
type State struct {
	ID, Workspace, Mode, Model string
	Created, Updated           time.Time
	// Title is the beginning of the first user message, one line.
	Title    string
	Messages []message.Message
	// Turn is the number of the last turn, Stop how it ended; Stop is empty while it runs.
	Turn int
	Stop event.Stop
	// Usage is the sum over all finished turns' steps.
	Usage message.Usage

	calls    map[string]callRef // by call id
	asked    int                // number of permissions asked
	step     string             // id of the assistant message whose step is not finished, or ""
	inTurn   bool
	lastPart partKind // kind of part that a delta of the same kind continues
}

// callRef is where a tool part is.
type callRef struct{ msg, part int }

type partKind uint8

const (
	partOther partKind = iota
	partText
	partReasoning
)

// Apply adds one event. An error means that the event does not fit the events before it; the state is then unchanged.
func (s *State) Apply(e event.Event) error {
	if s.ID == "" {
		if _, ok := e.Body.(event.SessionStarted); !ok {
			return fmt.Errorf("event %d: %T before the session started", e.Seq, e.Body)
		}
	}
	kind := partOther
	switch b := e.Body.(type) {
	case event.SessionStarted:
		if s.ID != "" {
			return fmt.Errorf("event %d: the session started twice", e.Seq)
		}
		s.ID, s.Workspace, s.Mode, s.Model, s.Created = b.Session, b.Workspace, b.Mode, b.Model, e.Time
	case event.ModeChanged:
		s.Mode = b.Mode
	case event.TurnStarted:
		s.Turn, s.Stop, s.inTurn = b.Turn, "", true
	case event.MessageStarted:
		m := b.Message
		m.Parts = slices.Clone(m.Parts)
		s.Messages = append(s.Messages, m)
		if m.Role == message.Assistant {
			s.step = m.ID
		} else if s.Title == "" {
			s.Title = titleOf(m.Text())
		}
	case event.StepStarted:
		if err := s.add(e, b.Message, message.StepStart{Model: b.Model}); err != nil {
			return err
		}
	case event.TextDelta:
		kind = partText
		if err := s.text(e, b.Message, kind, b.Text); err != nil {
			return err
		}
	case event.ReasoningDelta:
		kind = partReasoning
		if err := s.text(e, b.Message, kind, b.Text); err != nil {
			return err
		}
	case event.ToolCall:
		if _, ok := s.calls[b.CallID]; ok {
			return fmt.Errorf("event %d: second call %q", e.Seq, b.CallID)
		}
		t := message.Tool{CallID: b.CallID, Name: b.Name, Input: b.Input, Raw: b.Raw, State: message.ToolPending}
		if err := s.add(e, b.Message, t); err != nil {
			return err
		}
		if s.calls == nil {
			s.calls = map[string]callRef{}
		}
		last := len(s.Messages) - 1
		s.calls[b.CallID] = callRef{last, len(s.Messages[last].Parts) - 1}
	case event.ToolStarted:
		if err := s.tool(e, b.CallID, func(t *message.Tool) {
			t.State, t.Title = message.ToolRunning, b.Title
		}); err != nil {
			return err
		}
	case event.ToolResult:
		if err := s.tool(e, b.CallID, func(t *message.Tool) {
			t.State = message.ToolCompleted
			if b.IsError {
				t.State = message.ToolFailed
			}
			t.Output, t.Diff = b.Output, b.Diff
			if b.Title != "" {
				t.Title = b.Title
			}
		}); err != nil {
			return err
		}
	case event.PermissionAsked:
		s.asked++
	case event.StepFinished:
		if err := s.add(e, b.Message, message.StepFinish{Stop: b.Stop, Usage: b.Usage}); err != nil {
			return err
		}
		s.step = ""
		s.Usage = s.Usage.Add(b.Usage)
	case event.MessageAborted:
		m := s.last(b.Message)
		if m == nil {
			return fmt.Errorf("event %d: message %q is not the last one", e.Seq, b.Message)
		}
		m.Aborted = true
		s.step = ""
	case event.TurnFinished:
		s.Stop, s.inTurn = b.Stop, false
	}
	s.lastPart = kind
	s.Updated = e.Time
	return nil
}

// last returns the last message if it has this id.
func (s *State) last(id string) *message.Message {
	if n := len(s.Messages); n > 0 && s.Messages[n-1].ID == id {
		return &s.Messages[n-1]
	}
	return nil
}

func (s *State) add(e event.Event, id string, p message.Part) error {
	m := s.last(id)
	if m == nil {
		return fmt.Errorf("event %d: message %q is not the last one", e.Seq, id)
	}
	m.Parts = append(m.Parts, p)
	return nil
}

func (s *State) text(e event.Event, id string, kind partKind, text string) error {
	if m := s.last(id); m != nil && s.lastPart == kind && len(m.Parts) > 0 {
		n := len(m.Parts) - 1
		switch p := m.Parts[n].(type) {
		case message.Text:
			m.Parts[n] = message.Text{Text: p.Text + text}
			return nil
		case message.Reasoning:
			m.Parts[n] = message.Reasoning{Text: p.Text + text}
			return nil
		}
	}
	if kind == partReasoning {
		return s.add(e, id, message.Reasoning{Text: text})
	}
	return s.add(e, id, message.Text{Text: text})
}

func (s *State) tool(e event.Event, callID string, change func(*message.Tool)) error {
	ref, ok := s.calls[callID]
	if !ok {
		return fmt.Errorf("event %d: no call %q", e.Seq, callID)
	}
	t := s.Messages[ref.msg].Parts[ref.part].(message.Tool)
	change(&t)
	s.Messages[ref.msg].Parts[ref.part] = t
	return nil
}

// Clone returns a copy that does not change with the session.
func (s *State) Clone() State {
	c := *s
	c.Messages = make([]message.Message, len(s.Messages))
	for i, m := range s.Messages {
		m.Parts = slices.Clone(m.Parts)
		c.Messages[i] = m
	}
	c.calls = nil
	return c
}

// ForModel returns the conversation as a model may see it: without aborted messages, and with user messages that then follow
// each other joined, because strict chat templates want the roles to alternate.
func (s *State) ForModel() []message.Message {
	var out []message.Message
	for _, m := range s.Messages {
		if m.Aborted {
			continue
		}
		m.Parts = slices.Clone(m.Parts)
		if n := len(out); n > 0 && m.Role == message.User && out[n-1].Role == message.User {
			prev := &out[n-1]
			if len(prev.Parts) > 0 && len(m.Parts) > 0 {
				prev.Parts = append(prev.Parts, message.Text{Text: "\n\n"})
			}
			prev.Parts = append(prev.Parts, m.Parts...)
			continue
		}
		out = append(out, m)
	}
	return out
}

// repair returns the events that close what a crash left open. Applying them makes repair return none.
func (s *State) repair() []event.Body {
	var out []event.Body
	for _, m := range s.Messages {
		for _, t := range m.Calls() {
			if t.Done() {
				continue
			}
			text := "not run: the program ended before the call began"
			if t.State == message.ToolRunning {
				text = "interrupted: the program ended while the call ran; it may have taken effect partly"
			}
			out = append(out, event.ToolResult{CallID: t.CallID, Name: t.Name, IsError: true, Output: text, Title: t.Title})
		}
	}
	if s.step != "" {
		out = append(out, event.MessageAborted{Message: s.step, Reason: string(event.StopInterrupted)})
	}
	if s.inTurn {
		out = append(out, event.TurnFinished{Turn: s.Turn, Stop: event.StopInterrupted})
	}
	return out
}

// titleOf returns the first line of text that is not empty, without control characters, at most 80 bytes.
func titleOf(text string) string {
	for line := range strings.Lines(text) {
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(line, " "))
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			return cut(line, 77)
		}
	}
	return ""
}
