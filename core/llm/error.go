package llm

import "fmt"

// Kind is the category of an Error: one for each decision that a caller makes.
type Kind string

// The categories.
const (
	ContextOverflow Kind = "context_overflow" // the prompt does not fit; Prompt and Max say by how much
	Load            Kind = "load"             // the model cannot be loaded
	Auth            Kind = "auth"
	RateLimited     Kind = "rate_limited"
	Overloaded      Kind = "overloaded"
	HTTP            Kind = "http"
	Network         Kind = "network"
	Decode          Kind = "decode"   // the provider's answer cannot be read
	Internal        Kind = "internal" // the engine failed
	Script          Kind = "script"   // a scripted model ran out of steps or saw a request it did not expect
)

// Error is a fault of a model or its provider.
type Error struct {
	Kind    Kind
	Message string
	// Prompt and Max are in tokens, set with ContextOverflow.
	Prompt, Max int
	// Err is the cause; it may be nil.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Kind == ContextOverflow && e.Max > 0:
		return fmt.Sprintf("context window exceeded: the prompt has %d tokens, the window %d", e.Prompt, e.Max)
	case e.Message != "" && e.Err != nil:
		return e.Message + ": " + e.Err.Error()
	case e.Message != "":
		return e.Message
	case e.Err != nil:
		return string(e.Kind) + ": " + e.Err.Error()
	default:
		return "model: " + string(e.Kind)
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
