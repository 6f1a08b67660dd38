package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"atoll/inference/chat"
	"atoll/inference/engine"
	"atoll/inference/gguf"
	"atoll/inference/tokenizer"
)

// Renderer renders chat templates.
type Renderer struct {
	own      *chat.Template // of the model; nil without one
	bos, eos string         // of the model
}

// NewRenderer returns a renderer. With a path, requests without a template use that
// model's own, and bos_token and eos_token come from its vocabulary.
func NewRenderer(path string) (*Renderer, error) {
	if path == "" {
		return &Renderer{}, nil
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tok, err := tokenizer.New(f)
	if err != nil {
		return nil, err
	}
	opts := engine.FormatOptions(tok)
	r := &Renderer{bos: opts.BOS, eos: opts.EOS}
	switch src, err := f.String("tokenizer.chat_template"); {
	case errors.Is(err, gguf.ErrMissing): // then every request brings its own
	case err != nil:
		return nil, err
	default:
		if r.own, err = chat.Parse(src); err != nil {
			return nil, &gguf.Error{Path: path, Key: "key tokenizer.chat_template", Reason: err.Error(), Err: err}
		}
	}
	return r, nil
}

// RenderRequest is a line of input.
type RenderRequest struct {
	// Template is the text of a template; nil takes the model's.
	Template *string `json:"template"`
	// Context holds the template's variables, an object whose key order is kept.
	Context json.RawMessage `json:"context"`
	// Now is what strftime_now formats, as 2006-01-02T15:04:05; empty means the epoch.
	Now string `json:"now"`
}

// RenderResult is a line of output.
type RenderResult struct {
	Text string `json:"text"`
}

// Render renders one request. The variables tools and documents are none where the
// context lacks them.
func (r *Renderer) Render(req RenderRequest) (RenderResult, error) {
	tmpl := r.own
	if req.Template != nil {
		var err error
		if tmpl, err = chat.Parse(*req.Template); err != nil {
			return RenderResult{}, fmt.Errorf("parse template: %w", err)
		}
	}
	if tmpl == nil {
		return RenderResult{}, errors.New("render: no template given, and the model has none")
	}
	var opts chat.ExecOptions
	if req.Now != "" {
		var err error
		if opts.Now, err = parseNow(req.Now); err != nil {
			return RenderResult{}, err
		}
	}
	vars, err := r.variables(req.Context)
	if err != nil {
		return RenderResult{}, err
	}
	text, err := tmpl.Execute(vars, opts)
	if err != nil {
		return RenderResult{}, fmt.Errorf("render template: %w", err)
	}
	return RenderResult{text}, nil
}

// parseNow reads a time of day without a zone, or with one.
func parseNow(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("render: now %q is not of the form 2026-01-02T03:04:05", s)
}

func (r *Renderer) variables(context json.RawMessage) (*chat.Map, error) {
	if len(context) == 0 {
		context = json.RawMessage("{}")
	}
	v, err := chat.FromJSON(context)
	if err != nil {
		return nil, fmt.Errorf("read context: %w", err)
	}
	vars, ok := v.(*chat.Map)
	if !ok {
		return nil, errors.New("read context: not an object")
	}
	for _, d := range []struct{ key, json string }{
		{"tools", "null"}, {"documents", "null"}, {"bos_token", quote(r.bos)}, {"eos_token", quote(r.eos)},
	} {
		if _, ok := vars.Get(d.key); ok || d.json == `""` {
			continue
		}
		def, err := chat.FromJSON([]byte(d.json))
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", d.key, err)
		}
		vars.Set(d.key, def)
	}
	return vars, nil
}

// quote writes s as JSON.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: a string has no JSON form: " + err.Error())
	}
	return string(b)
}

// RenderLine handles a line of JSON.
func (r *Renderer) RenderLine(line []byte) (any, error) {
	var req RenderRequest
	if err := decode(line, &req); err != nil {
		return nil, err
	}
	return r.Render(req)
}
