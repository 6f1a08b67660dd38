package message

import "encoding/json"

// Part is one piece of a message. The set is sealed: Text, Reasoning, Tool, StepStart, StepFinish, Compaction, Image.
type Part interface{ part() }

// Text is plain text, of the user or of the model.
type Text struct {
	Text string `json:"text"`
	// Synthetic says that atoll wrote it in the user's place. The model sees no difference; a view may hide it.
	Synthetic bool `json:"synthetic,omitempty"`
}

// Reasoning is what a model thought before it answered. It is shown and stored, and not replayed to the model.
type Reasoning struct {
	Text string `json:"text"`
}

// ToolState is where a tool call stands. Completed and Failed are final.
type ToolState string

// The states of a tool call.
const (
	ToolPending   ToolState = "pending"   // the model made the call; nothing ran yet
	ToolRunning   ToolState = "running"   // permission was given and the tool started
	ToolCompleted ToolState = "completed" // Output is the result
	ToolFailed    ToolState = "error"     // Output is the error, as the model is told it
)

// Tool is a call of a tool together with its result.
type Tool struct {
	// CallID is unique within the session.
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	// Input holds the arguments, a JSON object. It is "{}" when Raw is set.
	Input json.RawMessage `json:"input"`
	// Raw is set instead of Input when the call could not be understood: the text as the model wrote it. An adapter shows it
	// to the model as assistant text, followed by Output as the tool's answer.
	Raw   string    `json:"raw,omitempty"`
	State ToolState `json:"state"`
	// Output is the result or the error text as the model is told it.
	Output string `json:"output,omitempty"`
	// Title is a short line for people, such as "edit main.go".
	Title string `json:"title,omitempty"`
	// Diff is a unified diff of what the call changed, found by the host and not told by the tool.
	Diff string `json:"diff,omitempty"`
}

// Done reports whether the call has its final result.
func (t Tool) Done() bool { return t.State == ToolCompleted || t.State == ToolFailed }

// StepStart marks the beginning of a model step.
type StepStart struct {
	// Model names the model that made the step.
	Model string `json:"model"`
}

// StepFinish marks the end of a model step.
type StepFinish struct {
	// Stop is the reason as llm.Stop spells it.
	Stop  string `json:"stop"`
	Usage Usage  `json:"usage"`
}

// Usage counts the tokens and the time of one or more model steps.
type Usage struct {
	// Prompt is the number of tokens of the request, Cached those of them that did not have to be evaluated again.
	Prompt int `json:"prompt"`
	Cached int `json:"cached"`
	// Output is the number of tokens the model produced.
	Output int `json:"output"`
	// PrefillMS and DecodeMS are wall-clock milliseconds.
	PrefillMS int64 `json:"prefill_ms"`
	DecodeMS  int64 `json:"decode_ms"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Prompt:    u.Prompt + v.Prompt,
		Cached:    u.Cached + v.Cached,
		Output:    u.Output + v.Output,
		PrefillMS: u.PrefillMS + v.PrefillMS,
		DecodeMS:  u.DecodeMS + v.DecodeMS,
	}
}

// Compaction stands for all messages before it, which a summary replaces when the conversation is shown to a model.
type Compaction struct {
	Summary string `json:"summary"`
}

// Image is a picture.
type Image struct {
	// MIME is the media type, such as "image/png".
	MIME string `json:"mime"`
	Data []byte `json:"data"`
}

func (Text) part()       {}
func (Reasoning) part()  {}
func (Tool) part()       {}
func (StepStart) part()  {}
func (StepFinish) part() {}
func (Compaction) part() {}
func (Image) part()      {}
