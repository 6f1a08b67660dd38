package chat

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// FormatOptions is what the vocabulary contributes to a format.
type FormatOptions struct {
	// BOS and EOS are the texts of the first and last token; templates print them.
	BOS, EOS string
	// ControlTokens are the texts of all control tokens of the vocabulary.
	ControlTokens []string
}

// Format renders conversations for one model and parses its answers.
type Format struct {
	tmpl   *Template
	opts   FormatOptions
	tokens map[byte][]string // control tokens by first byte, longest first
	family string
	shape  shape
	think  bool // the template knows <think>
}

// shape is what a template accepts, found out by trying: each deviation is a
// rewriting of the conversation. It depends on the template alone, never on the
// conversation, so that a longer conversation keeps the prefix of a shorter one.
type shape struct {
	tools       bool // describes tools, shows calls and results
	stringArgs  bool // wants arguments as JSON text
	nullContent bool // wants null for an assistant's missing text
	oneCall     bool // refuses several calls in one message
	noSystem    bool // refuses a system message
	oneSystem   bool // refuses a system message behind the first turn
	mergeTurns  bool // refuses two turns of one role in a row
	bridge      bool // refuses a user's turn behind a tool's result
	emptyTools  bool // wants an empty list where there are no tools, not null
}

// bridgeText is the assistant's turn put in where a template wants one and the
// conversation has none, because the user denied a call or interrupted.
const bridgeText = "Understood."

// NewFormat makes a format from the text of a chat template. What the template
// can do is decided by rendering small conversations with it: one that does not
// show tools, calls and results, or whose calls no parser here reads, gets the
// tools described in the system message and calls and results in the text of
// the turns, in the form of the hermes family.
func NewFormat(template string, opts FormatOptions) (*Format, error) {
	tmpl, err := Parse(template)
	if err != nil {
		return nil, fmt.Errorf("parse chat template: %w", err)
	}
	f := &Format{tmpl: tmpl, opts: opts, tokens: map[byte][]string{}, family: FamilyHermes}
	for _, tok := range opts.ControlTokens {
		if tok != "" {
			f.tokens[tok[0]] = append(f.tokens[tok[0]], tok)
		}
	}
	for _, toks := range f.tokens {
		sort.Slice(toks, func(i, j int) bool { return len(toks[i]) > len(toks[j]) })
	}
	for _, s := range tmpl.lits {
		f.think = f.think || strings.Contains(s, "</think>")
	}
	if err := f.probe(); err != nil {
		return nil, err
	}
	return f, nil
}

// Argument is an argument of a tool call, a text.
type Argument struct{ Name, Value string }

// CallOpening is how a tool call of the family begins: up to the tool's name, or with a name up to the arguments that are not
// given. It is "" where no fixed text begins a call. Put behind a prompt, it leaves the model no answer but a call.
func (f *Format) CallOpening(name string, given ...Argument) string {
	if f.family != FamilyHermes {
		return ""
	}
	var b strings.Builder
	b.WriteString("<tool_call>\n{\"name\": ")
	if name == "" {
		b.WriteString(`"`)
		return b.String()
	}
	fmt.Fprintf(&b, `%s, "arguments": {`, jsonQuote(name, false))
	for _, a := range given {
		fmt.Fprintf(&b, "%s: %s, ", jsonQuote(a.Name, false), jsonQuote(a.Value, false))
	}
	b.WriteString(`"`)
	return b.String()
}

// Family is the name of the form in which this model calls tools, see [ParseWhole].
func (f *Format) Family() string { return f.family }

// ToolsInTemplate says whether the template itself describes tools; where it does
// not, [Format.Render] puts the description into the system message.
func (f *Format) ToolsInTemplate() bool { return f.shape.tools }

// Render renders a conversation. The same messages give the same bytes, and more
// messages behind them leave those bytes in place as far as the template does.
// What an assistant generated comes back with the same bytes where the template
// writes a call as the model does: arguments keep the order of their keys and are
// spaced as Python's json.dumps spaces them, which is how these models were trained.
// Store an assistant's text as the parser gave it, untrimmed.
func (f *Format) Render(req Request) ([]Segment, error) {
	t, err := f.render(req, f.shape)
	if err != nil {
		return nil, fmt.Errorf("render chat template: %w", err)
	}
	return f.segments(t), nil
}

func (f *Format) render(req Request, sh shape) (text, error) {
	msgs, err := sh.rewrite(req.Messages, req.Tools)
	if err != nil {
		return text{}, err
	}
	vars := NewMap()
	vars.Set("bos_token", lit(f.opts.BOS))
	vars.Set("eos_token", lit(f.opts.EOS))
	vars.Set("add_generation_prompt", boolean(req.AddGenerationPrompt))
	list := NewList()
	for i := range msgs {
		list.Append(sh.message(&msgs[i]))
	}
	vars.Set("messages", list)
	vars.Set("tools", none{})
	if sh.emptyTools {
		vars.Set("tools", NewList())
	}
	vars.Set("documents", none{})
	if len(req.Tools) > 0 && sh.tools {
		tools := NewList()
		for i := range req.Tools {
			v, err := toolValue(&req.Tools[i])
			if err != nil {
				return text{}, err
			}
			tools.Append(v)
		}
		vars.Set("tools", tools)
	}
	for k, raw := range req.Extra {
		v, err := FromJSON(raw)
		if err != nil {
			return text{}, fmt.Errorf("template variable %q: %w", k, err)
		}
		vars.Set(k, v)
	}
	return f.tmpl.execute(vars, ExecOptions{Now: req.Now})
}

// toolValue is a tool in the form of the OpenAI API, which templates expect.
func toolValue(t *Tool) (Value, error) {
	params := t.Parameters
	if len(params) == 0 {
		params = json.RawMessage(`{"type": "object", "properties": {}}`)
	}
	p, err := FromJSON(params)
	if err != nil {
		return nil, fmt.Errorf("parameters of tool %q: %w", t.Name, err)
	}
	fn := NewMap()
	fn.Set("name", outside(t.Name))
	fn.Set("description", outside(t.Description))
	fn.Set("parameters", p)
	m := NewMap()
	m.Set("type", lit("function"))
	m.Set("function", fn)
	return m, nil
}

// message is a message as a template sees it. Its role is the only string in it
// that counts as the template's own: templates build control tokens from it.
func (sh shape) message(msg *Message) Value {
	m := NewMap()
	m.Set("role", lit(msg.Role))
	if msg.Content == "" && len(msg.ToolCalls) > 0 && sh.nullContent {
		m.Set("content", none{})
	} else {
		m.Set("content", outside(msg.Content))
	}
	if msg.Reasoning != "" {
		m.Set("reasoning_content", outside(msg.Reasoning))
	}
	if len(msg.ToolCalls) > 0 {
		calls := NewList()
		for _, c := range msg.ToolCalls {
			fn := NewMap()
			fn.Set("name", outside(c.Name))
			if sh.stringArgs {
				fn.Set("arguments", outside(pythonJSON(argumentsValue(c.Arguments))))
			} else {
				fn.Set("arguments", argumentsValue(c.Arguments))
			}
			call := NewMap()
			call.Set("id", outside(c.ID))
			call.Set("type", lit("function"))
			call.Set("function", fn)
			calls.Append(call)
		}
		m.Set("tool_calls", calls)
	}
	if msg.ToolCallID != "" {
		m.Set("tool_call_id", outside(msg.ToolCallID))
	}
	if msg.Name != "" {
		m.Set("name", outside(msg.Name))
	}
	return m
}

// argumentsValue reads the arguments of a past call. One that is no JSON must not
// make the rest of the conversation unreadable: it is shown as a string.
func argumentsValue(raw json.RawMessage) Value {
	if len(raw) == 0 {
		return NewMap()
	}
	v, err := FromJSON(raw)
	if err != nil {
		return outside(string(raw))
	}
	return v
}

// pythonJSON writes a value as a template's tojson does.
func pythonJSON(v Value) string {
	// Values made by FromJSON are bounded in depth and no larger than their text.
	r := &run{opts: ExecOptions{MaxBytes: 1 << 40, MaxSteps: 1 << 50, MaxDepth: 4 * maxJSONDepth}.withDefaults()}
	b := textBuilder{run: r}
	r.writeJSON(&b, v, &jsonPython, 0, 0)
	return b.sb.String()
}

// segments cuts rendered text at the control tokens that the template wrote.
func (f *Format) segments(t text) []Segment {
	var out []Segment
	last := 0
	cut := func(from, to int, special bool) {
		if from < to {
			out = append(out, Segment{t.s[from:to], special})
		}
	}
	next := 0 // first span of taint that ends behind i
	for i := 0; i < len(t.s); {
		for next < len(t.taint) && t.taint[next].to <= i {
			next++
		}
		limit := len(t.s)
		if next < len(t.taint) {
			if t.taint[next].from <= i {
				i = t.taint[next].to
				continue
			}
			limit = t.taint[next].from
		}
		n := 0
		for _, tok := range f.tokens[t.s[i]] {
			if strings.HasPrefix(t.s[i:limit], tok) {
				n = len(tok)
				break
			}
		}
		if n == 0 {
			i++
			continue
		}
		cut(last, i, false)
		cut(i, i+n, true)
		i += n
		last = i
	}
	cut(last, len(t.s), false)
	return out
}
