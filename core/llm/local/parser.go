package local

import (
	"fmt"

	"atoll/core/llm"
	"atoll/inference/chat"
)

// Parser takes a model's raw output apart as it streams.
type Parser interface {
	// Write takes the next piece; pieces are not cut inside a character.
	Write(piece string) ([]llm.Chunk, error)
	// Close ends the output.
	Close() ([]llm.Chunk, error)
}

// NewParser makes the parser of a tool-call family for output that does not come
// from a loaded model, such as a script's.
func NewParser(family string, specs []llm.ToolSpec) (Parser, error) {
	if family != chat.FamilyHermes {
		// No parser of this family streams: ask for one to get its error.
		if _, err := chat.ParseWhole(family, "", tools(specs)); err != nil {
			return nil, err
		}
		return &wholeParser{family: family, tools: tools(specs)}, nil
	}
	// A template that knows no tools has the calls of the hermes family.
	format, err := chat.NewFormat("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", chat.FormatOptions{})
	if err != nil {
		return nil, fmt.Errorf("parser of family %s: %w", family, err)
	}
	return &parser{p: format.NewParser(tools(specs))}, nil
}

// parser implements [Parser] over a format's own.
type parser struct{ p *chat.Parser }

// Write implements the same method as documented on Parser.
func (p *parser) Write(piece string) ([]llm.Chunk, error) { return p.write(piece), nil }

// Close implements the same method as documented on Parser.
func (p *parser) Close() ([]llm.Chunk, error) { return p.end(false), nil }

func (p *parser) write(piece string) []llm.Chunk { return chunks(p.p.Push(piece)) }

// end ends the output; cut says that a limit ended it and not the model.
func (p *parser) end(cut bool) []llm.Chunk {
	if cut {
		return chunks(p.p.CloseCut())
	}
	return chunks(p.p.Close())
}

// wholeParser implements [Parser] for families that are parsed at the end.
type wholeParser struct {
	family string
	tools  []chat.Tool
	raw    []byte
}

// Write implements the same method as documented on Parser.
func (p *wholeParser) Write(piece string) ([]llm.Chunk, error) {
	p.raw = append(p.raw, piece...)
	return nil, nil
}

// Close implements the same method as documented on Parser.
func (p *wholeParser) Close() ([]llm.Chunk, error) {
	a, err := chat.ParseWhole(p.family, string(p.raw), p.tools)
	if err != nil {
		return nil, err
	}
	var events []chat.Event
	if a.Reasoning != "" {
		events = append(events, chat.Event{Kind: chat.EventReasoning, Text: a.Reasoning})
	}
	if a.Content != "" {
		events = append(events, chat.Event{Kind: chat.EventText, Text: a.Content})
	}
	return chunks(append(events, a.Calls...)), nil
}

// chunks converts what a parser read.
func chunks(events []chat.Event) []llm.Chunk {
	var out []llm.Chunk
	for _, e := range events {
		switch e.Kind {
		case chat.EventText:
			out = append(out, llm.TextDelta{Text: e.Text})
		case chat.EventReasoning:
			out = append(out, llm.ReasoningDelta{Text: e.Text})
		case chat.EventRecast:
			// The text before it was reasoning after all. It has been shown and stays text:
			// no chunk takes text back, and a model is not told it again as reasoning.
		case chat.EventToolStart:
			out = append(out, llm.ToolInputDelta{Index: e.Index, Name: e.Name})
		case chat.EventToolDelta:
			out = append(out, llm.ToolInputDelta{Index: e.Index, Name: e.Name, Delta: e.Text})
		case chat.EventToolCall:
			out = append(out, llm.ToolCall{Index: e.Index, Name: e.Name, Arguments: e.Arguments})
		case chat.EventToolError:
			reason := e.Message
			if reason == "" {
				reason = string(e.Reason)
			}
			out = append(out, llm.ToolCallError{Index: e.Index, Name: e.Name, Raw: e.Raw, Reason: reason})
		}
	}
	return out
}
