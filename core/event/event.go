// Package event holds the typed events of a session and their JSON form. The journal stores events, every view is a projection
// of them, and one event a line is what `--output-format stream-json` prints.
//
// Most events are journaled: they have a sequence number, and they are on disk before anybody sees them. Live events
// (ToolInputDelta, Progress) are for display only: they have no number and are not stored.
package event

import (
	"encoding/json"
	"time"

	"atoll/core/message"
)

// Event is a body with its place in the session.
type Event struct {
	// Seq numbers the journaled events of a session from 1 without gaps. It is 0 for an event that is not in the journal: a
	// live one, or the end of a turn whose journal cannot be written any more.
	Seq uint64
	// Time is the wall clock when the event was made. Order is given by Seq alone.
	Time time.Time
	Body Body
}

// Body is what happened. The set is sealed; tag in codec.go lists it.
type Body interface{ body() }

// SessionStarted is the first event of every session.
type SessionStarted struct {
	Session   string `json:"session"`
	Workspace string `json:"workspace"` // absolute path
	Mode      string `json:"mode"`
	Model     string `json:"model"`
}

// ModeChanged says that the user gave the session another mode.
type ModeChanged struct {
	Mode string `json:"mode"`
}

// TurnStarted begins a turn: one user message and everything the assistant does about it.
type TurnStarted struct {
	Turn int `json:"turn"` // from 1
}

// MessageStarted opens a message. A user message is complete with it; an assistant message gets its parts by the events that
// name it.
type MessageStarted struct {
	Message message.Message `json:"message"`
}

// StepStarted begins a model step. Its message is the last one started.
type StepStarted struct {
	Message string `json:"message"`
	Step    int    `json:"step"` // within the turn, from 1
	Model   string `json:"model"`
}

// TextDelta is more text of a message. Deltas that follow each other make one part.
type TextDelta struct {
	Message string `json:"message"`
	Text    string `json:"text"`
}

// ReasoningDelta is more reasoning of a message.
type ReasoningDelta struct {
	Message string `json:"message"`
	Text    string `json:"text"`
}

// ToolInputDelta is live: a piece of the arguments while the model still writes them.
type ToolInputDelta struct {
	Message string `json:"message"`
	Index   int    `json:"index"` // of the call within the step
	Name    string `json:"name,omitempty"`
	Delta   string `json:"delta"`
}

// Progress is live: how much of the prompt is evaluated, in tokens.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// ToolCall is a call that the model made. Raw is set instead of Input when it could not be understood.
type ToolCall struct {
	Message string          `json:"message"`
	CallID  string          `json:"call_id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Raw     string          `json:"raw,omitempty"`
}

// ToolStarted says that a call was permitted and runs now.
type ToolStarted struct {
	CallID string `json:"call_id"`
	Title  string `json:"title,omitempty"`
}

// ToolResult ends a call.
type ToolResult struct {
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	IsError bool   `json:"is_error"`
	// Output is what the model is told.
	Output string `json:"output"`
	Title  string `json:"title,omitempty"`
	Diff   string `json:"diff,omitempty"`
}

// PermissionAsked says that a call waits for a decision.
type PermissionAsked struct {
	ID     string `json:"id"`
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	// Subject is what the call touches: a path, or a command.
	Subject string `json:"subject,omitempty"`
	// SessionRule is the rule that the answer "session" adds.
	SessionRule string `json:"session_rule,omitempty"`
}

// PermissionResolved is the decision. ID is empty when nobody was asked.
type PermissionResolved struct {
	ID      string `json:"id,omitempty"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Outcome string `json:"outcome"` // as permission.Outcome spells it
	Rule    string `json:"rule,omitempty"`
}

// StepFinished ends a model step.
type StepFinished struct {
	Message string        `json:"message"`
	Stop    string        `json:"stop"` // as llm.Stop spells it
	Usage   message.Usage `json:"usage"`
}

// MessageAborted marks an assistant message that did not reach its end.
type MessageAborted struct {
	Message string `json:"message"`
	Reason  string `json:"reason"` // "cancelled", "error", "interrupted"
}

// Notice is something the user should know and the model is not told.
type Notice struct {
	Text string `json:"text"`
}

// ContextOverflow says that a request did not fit the model's window, or that the window filled up while it wrote.
type ContextOverflow struct {
	Prompt int `json:"prompt"` // tokens; 0 where unknown
	Max    int `json:"max"`
}

// TurnFinished ends a turn.
type TurnFinished struct {
	Turn int  `json:"turn"`
	Stop Stop `json:"stop"`
	// Text is the answer: the text of the last message.
	Text  string        `json:"text"`
	Error string        `json:"error,omitempty"`
	Steps int           `json:"steps"`
	Usage message.Usage `json:"usage"` // sum over the steps
}

// Stop is how a turn ended.
type Stop string

// The ways a turn ends.
const (
	StopEnd         Stop = "end"         // the model gave its answer
	StopRefusal     Stop = "refusal"     // the model or its provider declined
	StopPermission  Stop = "permission"  // it ended, and something it needed was denied because nobody could be asked
	StopLength      Stop = "length"      // the limit of output tokens
	StopContext     Stop = "context"     // the model's window is full
	StopSteps       Stop = "steps"       // the limit of steps
	StopLoop        Stop = "loop"        // the same calls with the same results again and again
	StopEmpty       Stop = "empty"       // the model answered nothing
	StopError       Stop = "error"       // the model failed
	StopStorage     Stop = "storage"     // the journal cannot be written
	StopCancelled   Stop = "cancelled"   // by the user
	StopInterrupted Stop = "interrupted" // by the end of the process; found when the session was opened again
)

func (SessionStarted) body()     {}
func (ModeChanged) body()        {}
func (TurnStarted) body()        {}
func (MessageStarted) body()     {}
func (StepStarted) body()        {}
func (TextDelta) body()          {}
func (ReasoningDelta) body()     {}
func (ToolInputDelta) body()     {}
func (Progress) body()           {}
func (ToolCall) body()           {}
func (ToolStarted) body()        {}
func (ToolResult) body()         {}
func (PermissionAsked) body()    {}
func (PermissionResolved) body() {}
func (StepFinished) body()       {}
func (MessageAborted) body()     {}
func (Notice) body()             {}
func (ContextOverflow) body()    {}
func (TurnFinished) body()       {}

// Live reports whether b is for display only and not journaled.
func Live(b Body) bool {
	switch b.(type) {
	case ToolInputDelta, Progress:
		return true
	}
	return false
}
