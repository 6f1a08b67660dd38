// Package script is a model that answers from a file: for tests, demos and bug reports. The file holds one JSON object a line,
// one line for each model step, taken in order. Blank lines are skipped.
//
// Token counts are estimates of four bytes a token; a scripted model has no tokenizer.
package script

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"atoll/core/llm"
	"atoll/core/message"
)

// maxLine is the longest line in bytes.
const maxLine = 16 << 20

// Parser takes a model family's raw output apart as it streams.
type Parser interface {
	// Write takes the next piece; pieces are not cut inside a character.
	Write(piece string) ([]llm.Chunk, error)
	// Close ends the output.
	Close() ([]llm.Chunk, error)
}

// Options configure a scripted model.
type Options struct {
	// Name is shown as the model's id; empty means "script".
	Name string
	// NewParser makes the parser for steps with "raw"; without it such steps fail when the script is loaded.
	NewParser func(family string, tools []llm.ToolSpec) (Parser, error)
	// Context is the window in estimated tokens; 0 means no limit.
	Context int
}

// step is one line.
type step struct {
	Text      string     `json:"text"`
	Reasoning string     `json:"reasoning"`
	ToolCalls []toolCall `json:"tool_calls"`
	Stop      llm.Stop   `json:"stop"`
	SleepMS   int        `json:"sleep_ms"`
	Chunk     int        `json:"chunk"`
	Raw       string     `json:"raw"`
	Family    string     `json:"family"`
	Error     *stepError `json:"error"`
	Expect    *expect    `json:"expect"`

	line int
}

type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type stepError struct {
	Kind    llm.Kind `json:"kind"`
	Message string   `json:"message"`
}

type expect struct {
	Contains string   `json:"contains"`
	Tools    []string `json:"tools"`
}

// Model is a scripted model.
type Model struct {
	opts  Options
	steps []step

	mu   sync.Mutex // held during a step; guards next and last
	next int
	last string // the last request as text, for the count of cached tokens
}

// New reads a script. What is wrong with it is an error of kind llm.Load that names the line.
func New(r io.Reader, o Options) (*Model, error) {
	if o.Name == "" {
		o.Name = "script"
	}
	m := &Model{opts: o}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	n := 0
	for sc.Scan() {
		n++
		line := bytes.TrimSpace(sc.Bytes())
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) == 0 {
			continue
		}
		st, err := m.parse(line)
		if err != nil {
			return nil, &llm.Error{Kind: llm.Load, Message: fmt.Sprintf("script: line %d", n), Err: err}
		}
		st.line = n
		m.steps = append(m.steps, st)
	}
	if err := sc.Err(); err != nil {
		return nil, &llm.Error{Kind: llm.Load, Message: fmt.Sprintf("script: line %d", n+1), Err: err}
	}
	return m, nil
}

func (m *Model) parse(line []byte) (step, error) {
	var st step
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&st); err != nil {
		return st, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return st, errors.New("text after the object")
	}
	switch st.Stop {
	case "":
		st.Stop = llm.StopEnd
	case llm.StopEnd, llm.StopLength, llm.StopRefusal:
	default:
		return st, fmt.Errorf("unknown stop %q: end, length or refusal", st.Stop)
	}
	if st.SleepMS < 0 || st.Chunk < 0 {
		return st, errors.New("sleep_ms and chunk cannot be negative")
	}
	if st.Raw != "" && (st.Text != "" || st.Reasoning != "" || len(st.ToolCalls) > 0) {
		return st, errors.New("raw stands alone: no text, reasoning or tool_calls beside it")
	}
	if st.Raw != "" && m.opts.NewParser == nil {
		return st, errors.New("raw is not supported here: there is no parser")
	}
	if st.Family != "" && st.Raw == "" {
		return st, errors.New("family without raw")
	}
	for i, c := range st.ToolCalls {
		if c.Name == "" {
			return st, fmt.Errorf("tool_calls[%d] without name", i)
		}
	}
	if e := st.Error; e != nil && !slices.Contains(kinds, e.Kind) {
		return st, fmt.Errorf("unknown error kind %q: one of %v", e.Kind, kinds)
	}
	return st, nil
}

var kinds = []llm.Kind{
	llm.ContextOverflow, llm.Load, llm.Auth, llm.RateLimited, llm.Overloaded, llm.HTTP, llm.Network, llm.Decode, llm.Internal,
}

// Info implements llm.Model.
func (m *Model) Info() llm.Info {
	return llm.Info{ID: m.opts.Name, Family: "script", Context: m.opts.Context}
}

// Close implements llm.Model.
func (m *Model) Close() error { return nil }

// CountTokens implements llm.Model.
func (m *Model) CountTokens(_ context.Context, req *llm.Request) (int, error) {
	return tokens(render(req)), nil
}

// Generate implements llm.Model.
func (m *Model) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk) error) (*llm.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text := render(req)
	if n := tokens(text); m.opts.Context > 0 && n > m.opts.Context {
		return nil, &llm.Error{Kind: llm.ContextOverflow, Prompt: n, Max: m.opts.Context}
	}
	if m.next >= len(m.steps) {
		return nil, &llm.Error{Kind: llm.Script, Message: fmt.Sprintf("script: step %d was asked for, the file has %d", m.next+1, len(m.steps))}
	}
	st := m.steps[m.next]
	m.next++
	if err := st.check(req, text); err != nil {
		return nil, err
	}
	usage := llm.Usage{Prompt: tokens(text), Cached: tokens(text[:commonPrefix(m.last, text)])}
	m.last = text

	p := player{ctx: ctx, emit: emit, usage: &usage}
	if err := p.play(st, m.opts.NewParser, req.Tools); err != nil {
		return nil, err
	}
	if st.Error != nil {
		return nil, &llm.Error{Kind: st.Error.Kind, Message: st.Error.Message}
	}
	return &llm.Result{Stop: st.Stop, Usage: usage}, nil
}

// check compares the request with what the step expects.
func (st step) check(req *llm.Request, text string) error {
	if st.Expect == nil {
		return nil
	}
	if !strings.Contains(text, st.Expect.Contains) {
		return &llm.Error{Kind: llm.Script, Message: fmt.Sprintf("script: line %d: the request does not contain %q", st.line, st.Expect.Contains)}
	}
	for _, want := range st.Expect.Tools {
		if !slices.ContainsFunc(req.Tools, func(t llm.ToolSpec) bool { return t.Name == want }) {
			return &llm.Error{Kind: llm.Script, Message: fmt.Sprintf("script: line %d: the request does not offer the tool %q", st.line, want)}
		}
	}
	return nil
}

// player streams one step.
type player struct {
	ctx   context.Context
	emit  func(llm.Chunk) error
	usage *llm.Usage
	wait  time.Duration // before each piece
}

// play streams the step. sleep_ms is how long the step takes; it is spread evenly over the pieces.
func (p *player) play(st step, newParser func(string, []llm.ToolSpec) (Parser, error), tools []llm.ToolSpec) error {
	reasoning, text, raw := pieces(st.Reasoning, st.Chunk), pieces(st.Text, st.Chunk), pieces(st.Raw, st.Chunk)
	n := max(1, len(reasoning)+len(text)+len(raw))
	p.wait = time.Duration(st.SleepMS) * time.Millisecond / time.Duration(n)
	if len(reasoning)+len(text)+len(raw) == 0 {
		if err := p.sleep(); err != nil {
			return err
		}
	}
	for _, s := range reasoning {
		if err := p.send(llm.ReasoningDelta{Text: s}, s); err != nil {
			return err
		}
	}
	for _, s := range text {
		if err := p.send(llm.TextDelta{Text: s}, s); err != nil {
			return err
		}
	}
	for i, c := range st.ToolCalls {
		p.usage.Output += tokens(c.Name) + tokens(string(c.Arguments))
		if err := p.emit(chunkOf(i, c)); err != nil {
			return err
		}
	}
	if len(raw) == 0 {
		return nil
	}
	family := st.Family
	if family == "" {
		family = "hermes"
	}
	parser, err := newParser(family, tools)
	if err != nil {
		return &llm.Error{Kind: llm.Script, Message: fmt.Sprintf("script: line %d", st.line), Err: err}
	}
	for _, s := range raw {
		if err := p.sleep(); err != nil {
			return err
		}
		p.usage.Output += tokens(s)
		chunks, err := parser.Write(s)
		if err := p.all(st, chunks, err); err != nil {
			return err
		}
	}
	chunks, err := parser.Close()
	return p.all(st, chunks, err)
}

func (p *player) all(st step, chunks []llm.Chunk, err error) error {
	for _, c := range chunks {
		if err := p.emit(c); err != nil {
			return err
		}
	}
	if err != nil {
		return &llm.Error{Kind: llm.Script, Message: fmt.Sprintf("script: line %d", st.line), Err: err}
	}
	return nil
}

func (p *player) send(c llm.Chunk, s string) error {
	if err := p.sleep(); err != nil {
		return err
	}
	p.usage.Output += tokens(s)
	return p.emit(c)
}

func (p *player) sleep() error {
	if p.wait <= 0 {
		return p.ctx.Err()
	}
	t := time.NewTimer(p.wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// chunkOf turns a call of the script into a chunk. Arguments that are no object are what a model gets wrong, too.
func chunkOf(i int, c toolCall) llm.Chunk {
	args := bytes.TrimSpace(c.Arguments)
	if len(args) == 0 {
		args = []byte("{}")
	}
	if args[0] != '{' {
		return llm.ToolCallError{Index: i, Name: c.Name, Raw: string(args), Reason: "the arguments are not a JSON object"}
	}
	return llm.ToolCall{Index: i, Name: c.Name, Arguments: json.RawMessage(bytes.Clone(args))}
}

// pieces cuts s into pieces of size bytes, longer only where a character would be cut. Size 0 means one piece.
func pieces(s string, size int) []string {
	if s == "" {
		return nil
	}
	if size <= 0 {
		return []string{s}
	}
	var out []string
	for len(s) > size {
		n := size
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}

// render writes the request as text, for "expect" and the counts.
func render(req *llm.Request) string {
	var b strings.Builder
	b.WriteString(req.System)
	for _, t := range req.Tools {
		fmt.Fprintf(&b, "\n%s: %s %s", t.Name, t.Description, t.Parameters)
	}
	for _, m := range req.Messages {
		fmt.Fprintf(&b, "\n[%s]\n", m.Role)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case message.Text:
				b.WriteString(p.Text)
			case message.Compaction:
				b.WriteString(p.Summary)
			case message.Tool:
				if p.Raw != "" {
					fmt.Fprintf(&b, "\n[call] %s\n[result] %s\n", p.Raw, p.Output)
				} else {
					fmt.Fprintf(&b, "\n[call] %s %s\n[result] %s\n", p.Name, p.Input, p.Output)
				}
			}
		}
	}
	return b.String()
}

func tokens(s string) int { return (len(s) + 3) / 4 }

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
