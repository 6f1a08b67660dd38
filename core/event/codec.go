package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// envelope is the head of the JSON form; the body's keys follow it in the same object.
type envelope struct {
	Seq  uint64 `json:"seq,omitempty"`
	Time string `json:"time"`
	Type string `json:"type"`
}

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// tag returns the value of "type" for b, or "".
func tag(b Body) string {
	switch b.(type) {
	case SessionStarted:
		return "session_started"
	case ModeChanged:
		return "mode_changed"
	case TurnStarted:
		return "turn_started"
	case MessageStarted:
		return "message_started"
	case StepStarted:
		return "step_started"
	case TextDelta:
		return "text_delta"
	case ReasoningDelta:
		return "reasoning_delta"
	case ToolInputDelta:
		return "tool_input_delta"
	case Progress:
		return "progress"
	case ToolCall:
		return "tool_call"
	case ToolStarted:
		return "tool_started"
	case ToolResult:
		return "tool_result"
	case PermissionAsked:
		return "permission_asked"
	case PermissionResolved:
		return "permission_resolved"
	case StepFinished:
		return "step_finished"
	case MessageAborted:
		return "message_aborted"
	case Notice:
		return "notice"
	case ContextOverflow:
		return "context_overflow"
	case TurnFinished:
		return "turn_finished"
	default:
		return ""
	}
}

// Encode returns the JSON form of e in one line, without the escapes for HTML that json.Marshal adds.
func Encode(e Event) ([]byte, error) { return marshal(e) }

// Decode is the reverse of Encode.
func Decode(b []byte) (Event, error) {
	var e Event
	err := e.UnmarshalJSON(b) // not through json.Unmarshal, which would read b once more
	return e, err
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MarshalJSON implements json.Marshaler.
func (e Event) MarshalJSON() ([]byte, error) {
	t := tag(e.Body)
	if t == "" {
		return nil, fmt.Errorf("encode event: no type tag for %T", e.Body)
	}
	if c, ok := e.Body.(ToolCall); ok && len(c.Input) == 0 {
		c.Input = json.RawMessage("{}")
		e.Body = c
	}
	head, err := marshal(envelope{Seq: e.Seq, Time: e.Time.UTC().Format(timeLayout), Type: t})
	if err != nil {
		return nil, err
	}
	body, err := marshal(e.Body)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", t, err)
	}
	if len(body) == 2 {
		return head, nil
	}
	head[len(head)-1] = ','
	return append(head, body[1:]...), nil
}

// UnmarshalJSON implements json.Unmarshaler. An unknown type is an error: the journal is the truth, and a reader that skips
// what it does not know would show something else.
func (e *Event) UnmarshalJSON(b []byte) error {
	var env envelope
	if err := json.Unmarshal(b, &env); err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	at, err := time.Parse(timeLayout, env.Time)
	if err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	body, err := decodeBody(env.Type, b)
	if err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	*e = Event{Seq: env.Seq, Time: at, Body: body}
	return nil
}

func decodeBody(t string, b []byte) (Body, error) {
	switch t {
	case "session_started":
		return decode[SessionStarted](b)
	case "mode_changed":
		return decode[ModeChanged](b)
	case "turn_started":
		return decode[TurnStarted](b)
	case "message_started":
		m, err := decode[MessageStarted](b)
		if err == nil && m.(MessageStarted).Message.Role == "" {
			return nil, errors.New("message_started without a message")
		}
		return m, err
	case "step_started":
		return decode[StepStarted](b)
	case "text_delta":
		return decode[TextDelta](b)
	case "reasoning_delta":
		return decode[ReasoningDelta](b)
	case "tool_input_delta":
		return decode[ToolInputDelta](b)
	case "progress":
		return decode[Progress](b)
	case "tool_call":
		return decode[ToolCall](b)
	case "tool_started":
		return decode[ToolStarted](b)
	case "tool_result":
		return decode[ToolResult](b)
	case "permission_asked":
		return decode[PermissionAsked](b)
	case "permission_resolved":
		return decode[PermissionResolved](b)
	case "step_finished":
		return decode[StepFinished](b)
	case "message_aborted":
		return decode[MessageAborted](b)
	case "notice":
		return decode[Notice](b)
	case "context_overflow":
		return decode[ContextOverflow](b)
	case "turn_finished":
		return decode[TurnFinished](b)
	default:
		return nil, fmt.Errorf("unknown type %q", t)
	}
}

func decode[T Body](b []byte) (Body, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	return v, nil
}
