package local

import (
	"encoding/json"
	"strings"
	"testing"

	"atoll/core/llm"
	"atoll/core/message"
	"atoll/inference/tinymodel"
)

// A required call begins as the choice says, whatever the model would have written, and its beginning counts as prompt.
func TestToolRequired(t *testing.T) {
	m := open(t, Options{Path: tiny(t, tinymodel.Options{}), Threads: 1})
	specs := []llm.ToolSpec{{Name: "edit", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"}},"required":["path"]}`)}}
	for _, c := range []struct {
		name   string
		choice llm.ToolChoice
		tools  []llm.ToolSpec
		want   string // the beginning of what the parser saw
	}{
		{"any tool", llm.ToolChoice{Mode: llm.ToolRequired}, specs, "<tool_call>\n{\"name\": \""},
		{"a tool", llm.ToolChoice{Mode: llm.ToolRequired, Name: "edit"}, specs, `<tool_call>` + "\n" + `{"name": "edit", "arguments": {"`},
		{"a tool and its path", llm.ToolChoice{Mode: llm.ToolRequired, Name: "edit", Given: []llm.Argument{{Name: "path", Value: `a "b" <c>.go`}}}, specs,
			`<tool_call>` + "\n" + `{"name": "edit", "arguments": {"path": "a \"b\" <c>.go", "`},
		{"no tools", llm.ToolChoice{Mode: llm.ToolRequired}, nil, ""},
		{"left to the model", llm.ToolChoice{}, specs, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &llm.Request{Messages: []message.Message{user("go")}, Tools: c.tools, MaxTokens: 1}
			plain, err := m.prompt(req)
			if err != nil {
				t.Fatal(err)
			}
			req.ToolChoice = c.choice
			var opened strings.Builder
			ids, mask, err := m.choose(req, plain, func(s string) error { opened.WriteString(s); return nil })
			if err != nil || mask != nil {
				t.Fatal(mask, err)
			}
			if opened.String() != c.want {
				t.Errorf("opened with %q, want %q", opened.String(), c.want)
			}
			if got := m.engine.Tokenizer().Decode(ids[len(plain):], true); got != c.want {
				t.Errorf("the prompt goes on with %q, want %q", got, c.want)
			}
			res, err := m.Generate(t.Context(), req, func(llm.Chunk) error { return nil })
			if err != nil || res.Usage.Prompt != len(ids) {
				t.Errorf("%+v, %v; the prompt has %d tokens", res, err, len(ids))
			}
		})
	}
	// The rest that a model writes makes it a call.
	p, err := NewParser("hermes", specs)
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := p.Write(m.format.CallOpening("edit") + `path": "x"}}` + "\n</tool_call>")
	if err != nil {
		t.Fatal(err)
	}
	rest, err := p.Close()
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, c := range append(chunks, rest...) {
		if call, ok := c.(llm.ToolCall); ok && call.Name == "edit" && string(call.Arguments) == `{"path": "x"}` {
			calls++
		}
	}
	if calls != 1 {
		t.Errorf("%d calls in %+v", calls, chunks)
	}
}

// An answer in words begins with no mark of a call; behind its first token anything may come.
func TestToolNone(t *testing.T) {
	m := open(t, Options{Path: tiny(t, tinymodel.Options{}), Threads: 1})
	tok := m.engine.Tokenizer()
	req := &llm.Request{Messages: []message.Message{user("go")}, MaxTokens: 1, ToolChoice: llm.ToolChoice{Mode: llm.ToolNone}}
	_, mask, err := m.choose(req, []int32{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	words := mask.(*wordsFirst)
	allowed := 0
	for id := range int32(tok.Len()) {
		piece := strings.TrimLeft(string(tok.Piece(id)), " ")
		begins := piece == "" || strings.ContainsAny(piece[:1], "<{[`\"'\n\r\t")
		if ok := words.Allowed(id); ok {
			allowed++
			if begins || tok.IsControl(id) {
				t.Errorf("token %q is allowed first", tok.Piece(id))
			}
		}
	}
	if allowed < 26 {
		t.Errorf("only %d tokens are allowed", allowed)
	}
	words.begun = true
	if id := tok.Encode("{", false, false)[0]; !words.Allowed(id) {
		t.Error("a brace is forbidden behind the first word")
	}
	_, chunks := run(t, m, req)
	if got := text(chunks); got == "" || strings.ContainsAny(got[:1], "<{[`\"'\n") {
		t.Errorf("answered %q", got)
	}
}
