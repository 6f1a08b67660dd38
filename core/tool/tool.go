// Package tool is what the agent knows of tools: how they are described to a model, what a call asks for, and how it is run.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"atoll/core/permission"
)

// ErrUnavailable: the tool cannot run on this machine at all; another call would fail the same way.
var ErrUnavailable = errors.New("tool is not available")

// Spec describes a tool.
type Spec struct {
	// Name is made of letters, digits, '_' and '-'.
	Name        string
	Description string
	// Parameters is the JSON Schema of the arguments: an object.
	Parameters json.RawMessage
	// Access is the most that a call does to the workspace.
	Access permission.Access
}

// Call is one call with arguments that fit the schema.
type Call struct {
	ID    string
	Input json.RawMessage
	// Mode is what the session grants; the tool enforces it.
	Mode permission.Mode
}

// Result is what a call gave. A tool that fails (file not found, no match) is a Result with IsError, not an error.
type Result struct {
	// Output is the text for the model.
	Output string
	// Title is a short line for people.
	Title string
	// Diff is a unified diff of the files that changed, as the host saw them change.
	Diff    string
	IsError bool
}

// Tool is one tool. Its methods are safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Request says what a call would touch. The input fits the schema.
	Request(call Call) (permission.Request, error)
	// Run runs a permitted call. It returns soon after ctx ends, with ctx's error. Any other error means that the call could
	// not be run; the model is told its text.
	Run(ctx context.Context, call Call) (Result, error)
}

// InputError says what is wrong with a call's arguments. Its text is for the model.
type InputError struct {
	Tool   string
	Reason string
	// Usage names the arguments and their types.
	Usage string
}

// Error implements error.
func (e *InputError) Error() string {
	return fmt.Sprintf("invalid arguments for %s: %s. %s takes %s", e.Tool, e.Reason, e.Tool, e.Usage)
}

// UnknownError says that there is no such tool.
type UnknownError struct {
	Name  string
	Known []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown tool %q; the tools are %s", e.Name, strings.Join(e.Known, ", "))
}

// Registry holds tools by name, in the order in which they were given. It does not change.
type Registry struct {
	tools  []Tool
	byName map[string]entry
}

type entry struct {
	tool   Tool
	schema *schema
}

// NewRegistry returns a registry of these tools.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byName: map[string]entry{}}
	for _, t := range tools {
		sp := t.Spec()
		if sp.Name == "" {
			return nil, errors.New("register tool: no name")
		}
		if _, ok := r.byName[sp.Name]; ok {
			return nil, fmt.Errorf("register tool %s: already there", sp.Name)
		}
		sc, err := parseSchema(sp.Parameters)
		if err != nil {
			return nil, fmt.Errorf("register tool %s: parameters: %w", sp.Name, err)
		}
		r.tools = append(r.tools, t)
		r.byName[sp.Name] = entry{t, sc}
	}
	return r, nil
}

// Specs returns the specs of the tools that the mode can grant.
func (r *Registry) Specs(m permission.Mode) []Spec {
	var out []Spec
	for _, t := range r.tools {
		if sp := t.Spec(); m.Grants(sp.Access) {
			out = append(out, sp)
		}
	}
	return out
}

// Get returns a tool. An unknown name is an *UnknownError that names what the mode offers.
func (r *Registry) Get(name string, m permission.Mode) (Tool, error) {
	if e, ok := r.byName[name]; ok {
		return e.tool, nil
	}
	known := []string{}
	for _, sp := range r.Specs(m) {
		known = append(known, sp.Name)
	}
	return nil, &UnknownError{Name: name, Known: known}
}

// CheckInput returns the arguments in the form that the tool gets: a number or a boolean that a model wrote as a string is taken
// for what the schema wants, and a null for an optional argument is dropped. What does not fit is an *InputError.
func (r *Registry) CheckInput(name string, input json.RawMessage) (json.RawMessage, error) {
	e, ok := r.byName[name]
	if !ok {
		panic("BUG: arguments of unknown tool " + name)
	}
	out, err := e.schema.check(input)
	if err != nil {
		return nil, &InputError{Tool: name, Reason: err.Error(), Usage: e.schema.usage()}
	}
	return out, nil
}
