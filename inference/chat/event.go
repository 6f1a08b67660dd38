package chat

import (
	"encoding/json"
	"strings"
)

// EventKind says what an [Event] reports.
type EventKind uint8

const (
	// EventText is a piece of the answer, in Text.
	EventText EventKind = iota
	// EventReasoning is a piece of what the model thinks, in Text.
	EventReasoning
	// EventRecast says that all text so far was reasoning: the tag that opened it was
	// part of the prompt, and only now the one that closes it came.
	EventRecast
	// EventToolStart says that a call of tool Name has begun.
	EventToolStart
	// EventToolDelta is a piece of the arguments as the model writes them, in Text: for
	// display only, it may need repair. Not every call has deltas.
	EventToolDelta
	// EventToolCall is a whole call: Name is an offered tool and Arguments fit its schema.
	EventToolCall
	// EventToolError is a call that must not run: Raw is its text, Reason and Message say
	// what is wrong with it, Name is the tool's where it could be read.
	EventToolError
)

// ErrorReason classifies a call that cannot run.
type ErrorReason string

const (
	// Malformed: no call can be read, or the output ended within one.
	Malformed ErrorReason = "malformed"
	// UnknownTool: the call names a tool that was not offered.
	UnknownTool ErrorReason = "unknown_tool"
	// InvalidArguments: a required argument is missing or a value does not fit.
	InvalidArguments ErrorReason = "invalid_arguments"
)

// Event is one thing that a [Parser] read.
type Event struct {
	Kind      EventKind
	Text      string
	Index     int    // of the call within the answer, from 0
	Name      string // of the tool
	Arguments json.RawMessage
	Raw       string
	Reason    ErrorReason
	Message   string
}

// Answer is a whole answer.
type Answer struct {
	Content   string
	Reasoning string
	Calls     []Event // EventToolCall and EventToolError, in order
}

// Collect puts the events of one answer together.
func Collect(events []Event) Answer {
	var a Answer
	var content, reasoning strings.Builder
	for _, e := range events {
		switch e.Kind {
		case EventText:
			content.WriteString(e.Text)
		case EventReasoning:
			reasoning.WriteString(e.Text)
		case EventRecast:
			reasoning.WriteString(strings.TrimSpace(content.String()))
			content.Reset()
		case EventToolCall, EventToolError:
			a.Calls = append(a.Calls, e)
		}
	}
	a.Content, a.Reasoning = content.String(), reasoning.String()
	return a
}
