// Package message holds the conversation: messages made of sealed parts, and their JSON form.
//
// A message is a plain value. Nothing here is safe for concurrent mutation; share copies. The JSON form is what the journal
// stores and what streams show, so a change of a tag or a key is a change of the store's format version.
package message

import "strings"

// Role says who a message comes from. Tool results have no role of their own: they live in the Tool part of the assistant
// message that asked for them.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one entry of a conversation. An assistant message covers exactly one model step: what the model wrote, the calls
// it made, and what the tools answered.
type Message struct {
	// ID is unique within its session. It is made of letters, digits and '-'.
	ID   string
	Role Role
	// Parts are in the order in which they came into being.
	Parts []Part
	// Aborted marks an assistant message that did not reach its end: cancelled, failed, or cut off by a crash. It is kept for
	// the reader and is never replayed to a model.
	Aborted bool
}

// Text joins what the user or the model said: the text parts that are not synthetic.
func (m Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok && !t.Synthetic {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}

// Calls returns the message's tool parts in order.
func (m Message) Calls() []Tool {
	var calls []Tool
	for _, p := range m.Parts {
		if t, ok := p.(Tool); ok {
			calls = append(calls, t)
		}
	}
	return calls
}

// NewUser returns a user message that holds one text.
func NewUser(id, text string) Message {
	return Message{ID: id, Role: User, Parts: []Part{Text{Text: text}}}
}
