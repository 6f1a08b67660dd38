// Package llm is the contract between the agent and a language model, wherever the model runs.
//
// A Model takes a conversation and streams chunks. Adapters live beside this package (llm/local, llm/script); they turn the
// engine's or the provider's vocabulary into this one and import nothing of the agent.
package llm

import (
	"context"
	"encoding/json"

	"atoll/core/message"
)

// Model is a loaded model. Generate may be called again after it returned, never twice at the same time; an adapter serialises
// calls that overlap. CountTokens and Info may be called at any time before Close.
type Model interface {
	// Info describes the model. It does not change after the model was opened.
	Info() Info

	// Generate runs one model step. Chunks go to emit in order, on the calling goroutine. An error of emit stops the step and
	// is returned as it is. When ctx ends, Generate returns within 50 ms with an error for which errors.Is(err, ctx.Err())
	// holds; chunks emitted before stay valid. Faults of the model or its provider are an *Error.
	//
	// A request that does not fit the context is an *Error of kind ContextOverflow before anything is emitted; it is never
	// cut silently. A context that fills up while the model writes is no error: the result's Stop is StopContext.
	Generate(ctx context.Context, req *Request, emit func(Chunk) error) (*Result, error)

	// CountTokens returns the number of prompt tokens that Generate would evaluate for req.
	CountTokens(ctx context.Context, req *Request) (int, error)

	// Close frees the model. It waits for a running Generate.
	Close() error
}

// Info describes a model.
type Info struct {
	// ID names the model for people and in the journal, such as "qwen2.5-coder-1.5b".
	ID string
	// Family is the prompt and tool-call format, such as "hermes".
	Family string
	// Context is the window in tokens: prompt and answer together. Zero means unknown.
	Context int
}

// Request is one model step.
type Request struct {
	// System is the system prompt. It is byte-stable from step to step so that the prefix cache holds.
	System string
	// Messages is the conversation. Aborted messages are not part of it. A message.Tool part stands for both the call
	// (in the assistant's turn) and its answer (after it); a Reasoning part is not rendered; StepStart, StepFinish carry no
	// text. A Compaction part is rendered as its summary.
	Messages []message.Message
	Tools    []ToolSpec
	// MaxTokens limits the answer; 0 means as many as the context holds.
	MaxTokens int
	Sampling  Sampling
	// ToolChoice says whether the answer may, must or must not be a tool call.
	ToolChoice ToolChoice
}

// ToolChoice is what kind of answer a step may have. The zero value leaves it to the model.
type ToolChoice struct {
	Mode ToolMode
	// Name is the tool to call, with ToolRequired; "" leaves it to the model.
	Name string
	// Given are the first arguments of the call of Name, in order.
	Given []Argument
}

// Argument is an argument of a call, a text.
type Argument struct{ Name, Value string }

// ToolMode is part of a ToolChoice.
type ToolMode string

// The modes. An adapter that cannot enforce one leaves the answer to the model.
const (
	ToolAuto     ToolMode = ""         // the model decides
	ToolRequired ToolMode = "required" // the answer is a tool call
	ToolNone     ToolMode = "none"     // the answer begins with words
)

// ToolSpec is a tool as the model is told about it.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema of the arguments, an object
}

// Sampling says how the next token is chosen. The zero value is greedy decoding without a penalty.
type Sampling struct {
	Temperature   float32 // 0: greedy; the other fields but RepeatPenalty then have no effect
	TopK          int     // 0: off
	TopP          float32 // 0: off, like 1
	MinP          float32 // 0: off
	RepeatPenalty float32 // 0: off, like 1
	Seed          uint64
}

// Stop is why a step ended.
type Stop string

// The reasons.
const (
	StopEnd     Stop = "end"     // the model ended its turn, with or without tool calls
	StopLength  Stop = "length"  // MaxTokens was reached
	StopContext Stop = "context" // the context was full
	StopRefusal Stop = "refusal" // the model or its provider declined
)

// Usage counts tokens and time.
type Usage = message.Usage

// Result is the outcome of a step.
type Result struct {
	Stop  Stop
	Usage Usage
}

// Chunk is a piece of a streamed step. The set is sealed: TextDelta, ReasoningDelta, ToolInputDelta, ToolCall, ToolCallError,
// Progress.
type Chunk interface{ chunk() }

// TextDelta is more answer text. It is valid UTF-8.
type TextDelta struct{ Text string }

// ReasoningDelta is more reasoning text. It is valid UTF-8.
type ReasoningDelta struct{ Text string }

// ToolInputDelta is a piece of a tool call's arguments while the model still writes them, for display only.
type ToolInputDelta struct {
	Index int    // of the call within the step, from 0
	Name  string // may be empty while it is not known
	Delta string
}

// ToolCall is a complete call. It follows its ToolInputDeltas, if there were any.
type ToolCall struct {
	Index int
	// ID is the provider's id of the call; empty where it has none. It is not unique across steps.
	ID   string
	Name string
	// Arguments is a JSON object, syntactically valid. Whether it fits the tool's schema is for the agent to check.
	Arguments json.RawMessage
}

// ToolCallError is a call that could not be understood. The agent tells the model; the turn goes on.
type ToolCallError struct {
	Index  int
	Name   string // as far as it could be read; may be empty
	Raw    string // what the model wrote
	Reason string // what is wrong with it, for the model
}

// Progress tells how much of the prompt has been evaluated, in tokens. Total counts cached ones, too.
type Progress struct{ Done, Total int }

func (TextDelta) chunk()      {}
func (ReasoningDelta) chunk() {}
func (ToolInputDelta) chunk() {}
func (ToolCall) chunk()       {}
func (ToolCallError) chunk()  {}
func (Progress) chunk()       {}
