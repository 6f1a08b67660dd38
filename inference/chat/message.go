package chat

import (
	"encoding/json"
	"time"
)

// Roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string // one of the Role constants
	Content string
	// Reasoning is what an assistant thought before it answered. Templates decide
	// whether they show it again.
	Reasoning string
	ToolCalls []ToolCall // of an assistant
	// ToolCallID and Name say which call a tool's message answers.
	ToolCallID string
	Name       string
}

// ToolCall is a call that an assistant made.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object; anything else is shown as text
}

// Tool is a function offered to the model.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of an object; empty: no parameters
}

// Request is what to render.
type Request struct {
	Messages []Message
	Tools    []Tool
	// AddGenerationPrompt ends the prompt where an assistant's answer begins.
	AddGenerationPrompt bool
	// Extra are further variables of the template, such as enable_thinking.
	Extra map[string]json.RawMessage
	// Now is the time a template may print. Zero: the epoch. Keep it constant
	// within a session: a prompt that changes is a prompt computed again.
	Now time.Time
}

// Segment is a piece of a rendered prompt.
type Segment struct {
	Text string
	// Special says that Text is exactly one control token and that the template
	// wrote it. All other text must be tokenized without looking for control
	// tokens in it.
	Special bool
}
