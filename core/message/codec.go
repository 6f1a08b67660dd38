package message

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// wireMessage is the JSON form of a Message.
type wireMessage struct {
	ID      string            `json:"id"`
	Role    Role              `json:"role"`
	Parts   []json.RawMessage `json:"parts"`
	Aborted bool              `json:"aborted,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) {
	w := wireMessage{ID: m.ID, Role: m.Role, Parts: make([]json.RawMessage, len(m.Parts)), Aborted: m.Aborted}
	for i, p := range m.Parts {
		b, err := MarshalPart(p)
		if err != nil {
			return nil, fmt.Errorf("encode part %d: %w", i, err)
		}
		w.Parts[i] = b
	}
	return marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(b []byte) error {
	var w wireMessage
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	if w.Role != User && w.Role != Assistant {
		return fmt.Errorf("decode message: unknown role %q", w.Role)
	}
	out := Message{ID: w.ID, Role: w.Role, Aborted: w.Aborted}
	for i, raw := range w.Parts {
		p, err := UnmarshalPart(raw)
		if err != nil {
			return fmt.Errorf("decode part %d: %w", i, err)
		}
		out.Parts = append(out.Parts, p)
	}
	*m = out
	return nil
}

// tag returns the value of "type" in the JSON form of p.
func tag(p Part) string {
	switch p.(type) {
	case Text:
		return "text"
	case Reasoning:
		return "reasoning"
	case Tool:
		return "tool"
	case StepStart:
		return "step_start"
	case StepFinish:
		return "step_finish"
	case Compaction:
		return "compaction"
	case Image:
		return "image"
	default:
		return ""
	}
}

// marshal is json.Marshal without the escapes for HTML: an argument of a tool call keeps its bytes.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MarshalPart returns the JSON form of p: an object whose first key is "type".
func MarshalPart(p Part) ([]byte, error) {
	t := tag(p)
	if t == "" {
		return nil, fmt.Errorf("encode part: no type tag for %T", p)
	}
	if tp, ok := p.(Tool); ok && len(tp.Input) == 0 {
		tp.Input = json.RawMessage("{}")
		p = tp
	}
	body, err := marshal(p)
	if err != nil {
		return nil, err
	}
	head := []byte(`{"type":"` + t + `"`)
	if len(body) > 2 {
		head = append(head, ',')
	}
	return append(head, body[1:]...), nil
}

// UnmarshalPart is the reverse of MarshalPart. An unknown type tag is an error: a part that is not understood must not be
// dropped silently from a conversation.
func UnmarshalPart(b []byte) (Part, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, err
	}
	switch head.Type {
	case "text":
		return decode[Text](b)
	case "reasoning":
		return decode[Reasoning](b)
	case "tool":
		t, err := decode[Tool](b)
		if err != nil {
			return nil, err
		}
		switch t.(Tool).State {
		case ToolPending, ToolRunning, ToolCompleted, ToolFailed:
			return t, nil
		}
		return nil, fmt.Errorf("unknown tool state %q", t.(Tool).State)
	case "step_start":
		return decode[StepStart](b)
	case "step_finish":
		return decode[StepFinish](b)
	case "compaction":
		return decode[Compaction](b)
	case "image":
		return decode[Image](b)
	default:
		return nil, fmt.Errorf("unknown part type %q", head.Type)
	}
}

func decode[T Part](b []byte) (Part, error) {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	return v, nil
}
