package chat

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var codeTools = []Tool{
	{Name: "read", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer"}},"required":["path"]}`)},
	{Name: "write", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`)},
	{Name: "todo", Parameters: json.RawMessage(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"enum":["open","done"]}},"required":["text"]}}},"additionalProperties":false}`)},
}

const readA = `{"name": "read", "arguments": {"path": "a.go"}}`

// Each row is an answer of a model and what it means. Calls are written as
// name{arguments}, errors as reason:name.
func TestParseAnswers(t *testing.T) {
	for _, c := range []struct {
		name, raw, content, reasoning string
		calls                         []string
	}{
		{"tagged", "<tool_call>\n" + readA + "\n</tool_call>", "", "", []string{`read{"path": "a.go"}`}},
		{"prose then a fenced call at the end", "I will read it:\n\n```json\n" + readA + "\n```", "I will read it:", "", []string{`read{"path": "a.go"}`}},
		{"fenced call without its closing fence", "Reading.\n```json\n" + readA, "Reading.", "", []string{`read{"path": "a.go"}`}},
		{"two fenced calls at the end", "```json\n" + readA + "\n```\n\n```json\n{\"name\": \"todo\"}\n```\n", "", "", []string{`read{"path": "a.go"}`, "todo{}"}},
		{"fenced call in the middle is an example", "Write\n```json\n" + readA + "\n```\nto read.", "Write\n```json\n" + readA + "\n```\nto read.", "", nil},
		{"code, then a fenced call", "```json\n{\"a\": 1}\n```\n```json\n" + readA + "\n```", "```json\n{\"a\": 1}\n```", "", []string{`read{"path": "a.go"}`}},
		{"fenced object that names no tool", "```json\n{\"name\": \"demo\", \"version\": 1}\n```", "```json\n{\"name\": \"demo\", \"version\": 1}\n```", "", nil},
		{"fenced object that only mentions a tool", "```json\n{\"name\": \"read\", \"version\": 1}\n```", "```json\n{\"name\": \"read\", \"version\": 1}\n```", "", nil},
		{"fenced call that is cut", "```json\n{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"x", "", "", []string{"malformed:write"}},
		{"python block with a tag in it", "```python\nx = 1\n<tool_call>\n" + readA + "\n</tool_call>\n```\n", "```python\nx = 1\n<tool_call>\n" + readA + "\n</tool_call>\n```", "", nil},
		{"tag behind a block that never ended", "```python\nx = 1\n<tool_call>\n" + readA + "\n</tool_call>", "```python\nx = 1", "", []string{`read{"path": "a.go"}`}},
		{"tags within a last fence", "```xml\n<tool_call>\n" + readA + "\n</tool_call>\n```", "", "", []string{`read{"path": "a.go"}`}},
		{"doubled braces as one template shows them", `<tool_call>` + "\n" + `{{"name": "read", "arguments": {"path": "a.go"}}}` + "\n</tool_call>", "", "", []string{`read{"path": "a.go"}`}},
		{"arguments beside the name", `<tool_call>{"name": "read", "path": "a.go"}</tool_call>`, "", "", []string{`read{"path": "a.go"}`}},
		{"missing end tag and prose", "<tool_call>\n" + readA + "\nNow I wait.", "Now I wait.", "", []string{`read{"path": "a.go"}`}},
		{"bare call", readA, "", "", []string{`read{"path": "a.go"}`}},
		{"bare call of another tool is text", `{"name": "launch", "arguments": {}}`, `{"name": "launch", "arguments": {}}`, "", nil},
		{"bare call and then prose is text", readA + "\nThat is it.", readA + "\nThat is it.", "", nil},
		{"prose and then a bare call is text", "So: " + readA, "So: " + readA, "", nil},
		{"bare JSON with a tag in a string", `{"doc": "<tool_call>` + strings.ReplaceAll(readA, `"`, `\"`) + `</tool_call>"}`, `{"doc": "<tool_call>` + strings.ReplaceAll(readA, `"`, `\"`) + `</tool_call>"}`, "", nil},
		{"end token is not text", "Done.<|im_end|>", "Done.", "", nil},
		{"end token within text is", "Print <|im_end|> here", "Print <|im_end|> here", "", nil},
		{"unclosed reasoning", "<think>\nhm, well", "", "hm, well", nil},
		{"reasoning opened by the prompt", "let me see\n</think>\nYes.", "Yes.", "let me see", nil},
		{"think tag in the middle is text", "Use <think> tags.", "Use <think> tags.", "", nil},
		{"B019", "<tool_call>\n{\"name\":\"write\",\"arguments\":{\"path\":\"doc.md\",\"content\":\"Close it with </tool_call> and <tool_call> again.\\n\"}}\n</tool_call>", "", "", []string{`write{"path": "doc.md", "content": "Close it with </tool_call> and <tool_call> again.\n"}`}},
		{"B021", "<tool_call>\n<function=write>\n<parameter=path>\nm.py\n</parameter>\n<parameter=content>\n    if x:\n        return 1\n\n</parameter>\n</function>\n</tool_call>", "", "", []string{`write{"path": "m.py", "content": "    if x:\n        return 1\n"}`}},
		{"B021 one blank", "<tool_call>\n<function=write>\n<parameter=path>\n \n</parameter>\n<parameter=content>\n\n</parameter>\n</function>\n</tool_call>", "", "", []string{`write{"path": " ", "content": ""}`}},
		{"end tags within a parameter", "<tool_call>\n<function=write>\n<parameter=path>\nx\n</parameter>\n<parameter=content>\na </parameter> b </function> c\n</parameter>\n</function>\n</tool_call>ok", "ok", "", []string{`write{"path": "x", "content": "a </parameter> b </function> c"}`}},
		{"function without a name", "<tool_call>\n<function=>\n</function>\n</tool_call>", "", "", []string{"malformed:"}},
		{"string without an end, then a good call", "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a}}\n</tool_call>\n<tool_call>\n" + readA + "\n</tool_call>", "", "", []string{"malformed:read", `read{"path": "a.go"}`}},
		{"number that may be cut", `<tool_call>{"name": "read", "arguments": {"path": "a", "offset": 12`, "", "", []string{"malformed:read"}},
		{"number before an end tag", `<tool_call>{"name": "read", "arguments": {"path": "a", "offset": 12</tool_call>`, "", "", []string{`read{"path": "a", "offset": 12}`}},
		{"comma at the very end", `<tool_call>{"name": "read", "arguments": {"path": "a",`, "", "", []string{"malformed:read"}},
		{"required argument null", `<tool_call>{"name": "read", "arguments": {"path": null}}</tool_call>`, "", "", []string{"invalid_arguments:read"}},
		{"optional argument null", `<tool_call>{"name": "read", "arguments": {"path": "a", "offset": null}}</tool_call>`, "", "", []string{`read{"path": "a"}`}},
		{"argument the tool does not know", `<tool_call>{"name": "todo", "arguments": {"item": []}}</tool_call>`, "", "", []string{"invalid_arguments:todo"}},
		{"object for a list of objects", `<tool_call>{"name": "todo", "arguments": {"items": {"text": "x", "status": "done"}}}</tool_call>`, "", "", []string{`todo{"items": [{"text": "x", "status": "done"}]}`}},
		{"nested value out of its enumeration", `<tool_call>{"name": "todo", "arguments": {"items": [{"text": "x", "status": "DONE"}]}}</tool_call>`, "", "", []string{"invalid_arguments:todo"}},
		{"unknown tool and a good one", "<tool_call>\n{\"name\": \"fly\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n" + readA + "\n</tool_call>", "", "", []string{"unknown_tool:fly", `read{"path": "a.go"}`}},
		{"near-miss tag with text", "Put it in <tools> tags.", "Put it in <tools> tags.", "", nil},
		{"html", "<div>\n<p>x < y</p></div>", "<div>\n<p>x < y</p></div>", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := Collect(stream(codeTools, true, c.raw))
			var calls []string
			for i, e := range a.Calls {
				if e.Index != i {
					t.Errorf("call %d has index %d", i, e.Index)
				}
				if e.Kind == EventToolCall {
					calls = append(calls, e.Name+string(e.Arguments))
				} else {
					calls = append(calls, string(e.Reason)+":"+e.Name)
				}
			}
			if got := strings.TrimSpace(a.Content); got != c.content {
				t.Errorf("content: got %q, want %q", got, c.content)
			}
			if got := strings.TrimSpace(a.Reasoning); got != c.reasoning {
				t.Errorf("reasoning: got %q, want %q", got, c.reasoning)
			}
			if !reflect.DeepEqual(calls, c.calls) {
				t.Errorf("calls: got %q, want %q", calls, c.calls)
			}
			if msg := splitsAgree(c.raw, codeTools, true); msg != "" {
				t.Error(msg)
			}
		})
	}
}

// Text goes out as it comes; only what may still be a call is held back.
func TestParserStreams(t *testing.T) {
	p := newParser(codeTools, true)
	for _, c := range []struct {
		push string
		want []Event
	}{
		{"Hello wor", []Event{{Kind: EventText, Text: "Hello wor"}}},
		{"ld <b>", []Event{{Kind: EventText, Text: "ld <b>"}}},
		{" <tool", nil},
		{"bar> x\n\n", []Event{{Kind: EventText, Text: " <toolbar> x"}}},
		{"<tool_call>\n{\"name\": \"wri", nil},
		{"te\", \"argu", []Event{{Kind: EventToolStart, Name: "write"}}},
		{"ments\": {\"path\":", []Event{{Kind: EventToolDelta, Text: `{"path":`}}},
		{` "a", "content": "x"}`, []Event{{Kind: EventToolDelta, Text: ` "a", "content": "x"}`}}},
		{"}\n", nil},
		{"</tool_call>", []Event{{Kind: EventToolCall, Name: "write", Arguments: json.RawMessage(`{"path": "a", "content": "x"}`)}}},
		{"\nDone", []Event{{Kind: EventText, Text: "\n\nDone"}}},
	} {
		got := p.Push(c.push)
		for i := range got {
			got[i].Raw = ""
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("push %q:\n got %+v\nwant %+v", c.push, got, c.want)
		}
	}
	if got := p.Close(); got != nil {
		t.Errorf("close: %+v", got)
	}
}

// An answer cut by a limit: what lacks its brackets may lack arguments too.
func TestCloseCut(t *testing.T) {
	const raw = `<tool_call>{"name": "read", "arguments": {"path": "a.go"`
	if a := Collect(stream(codeTools, true, raw)); len(a.Calls) != 1 || a.Calls[0].Kind != EventToolCall {
		t.Errorf("closed by the model: %+v", a)
	}
	p := newParser(codeTools, true)
	a := Collect(append(p.Push(raw), p.CloseCut()...))
	if len(a.Calls) != 1 || a.Calls[0].Reason != Malformed || a.Calls[0].Name != "read" {
		t.Errorf("cut by a limit: %+v", a)
	}
	p = newParser(codeTools, true)
	a = Collect(append(p.Push(raw+"}}"), p.CloseCut()...))
	if len(a.Calls) != 1 || a.Calls[0].Kind != EventToolCall {
		t.Errorf("complete, then cut: %+v", a)
	}
}

// What the parser gives of a call renders to the bytes that the model wrote.
func TestCallsRenderAsGenerated(t *testing.T) {
	generated := "Let me see.\n<tool_call>\n{\"name\": \"write\", \"arguments\": {\"path\": \"é/x.go\", \"content\": \"a\\n\\t\\\"<b>\\\" & c\"}}\n</tool_call>"
	for _, name := range fixtures {
		f := fixtureFormat(t, name)
		p := f.NewParser(codeTools)
		a := Collect(append(p.Push(generated), p.Close()...))
		req := Request{Messages: []Message{{Role: RoleUser, Content: "q"}}, Tools: codeTools, AddGenerationPrompt: true}
		prompt := renderText(t, f, req)
		m := Message{Role: RoleAssistant, Content: a.Content}
		for _, e := range a.Calls {
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: "1", Name: e.Name, Arguments: e.Arguments})
		}
		req.Messages = append(req.Messages, m, Message{Role: RoleTool, ToolCallID: "1", Content: "ok"})
		if next := renderText(t, f, req); !strings.HasPrefix(next, prompt+generated+"<|im_end|>") {
			t.Errorf("%s: %s", name, diff(next, prompt+generated+"<|im_end|>"))
		}
	}
}

func TestUnsupportedFamily(t *testing.T) {
	if _, err := ParseWhole("harmony", "x", nil); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("got %v", err)
	}
	if _, err := ParseWhole("nosuch", "x", nil); err == nil {
		t.Error("unknown family accepted")
	}
}
