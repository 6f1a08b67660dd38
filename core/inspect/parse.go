package inspect

import (
	"encoding/json"
	"fmt"

	"atoll/inference/chat"
)

// ParseRequest is a line of input.
type ParseRequest struct {
	Family string          `json:"family"`
	Raw    string          `json:"raw"`
	Tools  json.RawMessage `json:"tools"` // see ParseTools
}

// ParseResult is a line of output.
type ParseResult struct {
	Content   string `json:"content"`
	Reasoning string `json:"reasoning"`
	Calls     []Call `json:"calls"`
	// Error is the kind of the first call that cannot run: malformed, unknown_tool or
	// invalid_arguments. Name is its tool, if it could be read, and Message what is wrong.
	Error   string `json:"error,omitempty"`
	Name    string `json:"name,omitempty"`
	Message string `json:"message,omitempty"`
}

// Call is a tool call.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Parse takes the raw output of a model apart.
func Parse(req ParseRequest) (ParseResult, error) {
	tools, err := ParseTools(req.Tools)
	if err != nil {
		return ParseResult{}, err
	}
	answer, err := chat.ParseWhole(req.Family, req.Raw, tools)
	if err != nil {
		return ParseResult{}, err
	}
	res := ParseResult{Content: answer.Content, Reasoning: answer.Reasoning, Calls: []Call{}}
	for _, e := range answer.Calls {
		switch {
		case e.Kind == chat.EventToolCall:
			res.Calls = append(res.Calls, Call{e.Name, e.Arguments})
		case res.Error == "":
			res.Error, res.Name, res.Message = string(e.Reason), e.Name, e.Message
		}
	}
	return res, nil
}

// ParseTools reads a list of tools as {"name", "description", "parameters"}, each of them
// bare or as the OpenAI API wraps it: {"type": "function", "function": {...}}.
func ParseTools(raw json.RawMessage) ([]chat.Tool, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	type spec struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	var list []struct {
		spec
		Function *spec `json:"function"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read tools: %w", err)
	}
	var tools []chat.Tool
	for i, t := range list {
		s := t.spec
		if t.Function != nil {
			s = *t.Function
		}
		if s.Name == "" {
			return nil, fmt.Errorf("read tools: tool %d has no name", i)
		}
		tools = append(tools, chat.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return tools, nil
}

// ParseLine handles a line of JSON.
func ParseLine(line []byte) (any, error) {
	var req ParseRequest
	if err := decode(line, &req); err != nil {
		return nil, err
	}
	return Parse(req)
}
