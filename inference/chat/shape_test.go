package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// b013 is the template of case B013: turns must alternate, calls do not count.
const b013 = `{% set ns = namespace(n=0) %}
{% for m in messages %}
{% if m.role in ['user', 'assistant'] and not m.tool_calls %}
{% if (m.role == 'user') != (ns.n % 2 == 0) %}{{ raise_exception('turns must alternate') }}{% endif %}
{% set ns.n = ns.n + 1 %}
{% endif %}
<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}[call {{ c.function.name }}]{% endfor %}</{{ m.role }}>
{% endfor %}
`

// b013tools is the same in a form that shows tools, arguments and results.
const b013tools = `{% for t in tools or [] %}{{ t | tojson }}{% endfor %}` + "\n" + `{% set x = '<tool_call>' %}` + b013 +
	`{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}`

func TestStrictTemplates(t *testing.T) {
	call := Message{Role: RoleAssistant, ToolCalls: []ToolCall{{ID: "1", Name: "bash", Arguments: json.RawMessage(`{"command":"rm a.txt"}`)}}}
	denied := Message{Role: RoleTool, ToolCallID: "1", Content: "denied by the user"}
	user := func(s string) Message { return Message{Role: RoleUser, Content: s} }
	for name, template := range map[string]string{"as filed": b013, "with tools": b013tools} {
		f, err := NewFormat(template, FormatOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := name == "with tools"; f.ToolsInTemplate() != want {
			t.Errorf("%s: tools in template: %v", name, f.ToolsInTemplate())
		}
		for row, msgs := range map[string][]Message{
			"denied call":              {user("delete a.txt"), call, denied, user("then rename it")},
			"two questions":            {user("delete a.txt"), user("then rename it")},
			"interrupted answer":       {user("delete a.txt"), {Role: RoleAssistant, Content: "I wi"}, user("then rename it")},
			"interrupted before it":    {user("delete a.txt"), user("hello?"), {Role: RoleAssistant, Content: "yes"}, user("then rename it")},
			"two denied calls":         {user("delete a.txt"), call, denied, user("no"), call, denied, user("then rename it")},
			"call, result, and answer": {user("delete a.txt"), call, denied, {Role: RoleAssistant, Content: "ok"}, user("then rename it")},
		} {
			out, err := f.render(Request{Messages: msgs, Tools: []Tool{{Name: "bash"}}, AddGenerationPrompt: true}, f.shape)
			if err != nil {
				t.Errorf("%s: %s: %v", name, row, err)
				continue
			}
			for _, want := range []string{"delete a.txt", "then rename it"} {
				if !strings.Contains(out.s, want) {
					t.Errorf("%s: %s: %q is not in %q", name, row, want, out.s)
				}
			}
		}
	}
}

// A longer conversation begins with the bytes of the shorter one.
func TestRenderPrefix(t *testing.T) {
	msgs := []Message{
		{Role: RoleSystem, Content: "Be brief."},
		{Role: RoleUser, Content: "What is in a.go?"},
		{Role: RoleAssistant, Content: "I look.", ToolCalls: []ToolCall{{ID: "1", Name: "read", Arguments: json.RawMessage(`{"path":"a.go"}`)}}},
		{Role: RoleTool, ToolCallID: "1", Content: "package a"},
		{Role: RoleAssistant, Content: "A package."},
		{Role: RoleUser, Content: "Thanks"},
		{Role: RoleUser, Content: "And b.go?"},
	}
	for _, name := range fixtures {
		f := fixtureFormat(t, name)
		whole := renderText(t, f, Request{Messages: msgs, Tools: []Tool{readTool}})
		for n := 2; n < len(msgs); n++ {
			part := renderText(t, f, Request{Messages: msgs[:n], Tools: []Tool{readTool}})
			if !strings.HasPrefix(whole, part) {
				t.Errorf("%s: %d messages: %s", name, n, diff(whole, part))
			}
		}
	}
}

// Every template of the vectors makes a format, and renders what an agent sends.
func TestFormatsOfAllTemplates(t *testing.T) {
	templates := vectorTemplates(t)
	msgs := []Message{
		{Role: RoleSystem, Content: "instruction one"},
		{Role: RoleUser, Content: "question one"},
		{Role: RoleAssistant, Content: "answer one", ToolCalls: []ToolCall{
			{ID: "call00001", Name: "read", Arguments: json.RawMessage(`{"path":"path one"}`)},
			{ID: "call00002", Name: "read", Arguments: json.RawMessage(`{"path":"path two"}`)},
		}},
		{Role: RoleTool, ToolCallID: "call00001", Name: "read", Content: "result one"},
		{Role: RoleTool, ToolCallID: "call00002", Name: "read", Content: "result two"},
		{Role: RoleUser, Content: "question two"},
		{Role: RoleUser, Content: "question three"},
	}
	for name, src := range templates {
		f, err := NewFormat(src, FormatOptions{BOS: "<s>", EOS: "</s>", ControlTokens: []string{"<s>", "</s>"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		out, err := f.render(Request{Messages: msgs, Tools: []Tool{readTool}, AddGenerationPrompt: true}, f.shape)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range []string{"instruction one", "question one", "path one", "path two", "result one", "result two", "question two", "question three", "Read a file"} {
			if !strings.Contains(out.s, want) {
				t.Errorf("%s (%s, %+v): %q is not in the prompt: %q", name, f.Family(), f.shape, want, out.s)
			}
		}
	}
}

func TestBadRequests(t *testing.T) {
	f := fixtureFormat(t, fixtures[1])
	for name, c := range map[string]struct {
		req  Request
		want string
	}{
		"unknown role":         {Request{Messages: []Message{{Role: "<|im_end|>"}}}, "unknown role"},
		"calls of a user":      {Request{Messages: []Message{{Role: RoleUser, ToolCalls: []ToolCall{{Name: "x"}}}}}, "tool calls in a message of role"},
		"schema that is none":  {Request{Messages: []Message{{Role: RoleUser}}, Tools: []Tool{{Name: "x", Parameters: json.RawMessage(`{`)}}}, `tool "x"`},
		"variable that is not": {Request{Messages: []Message{{Role: RoleUser}}, Extra: map[string]json.RawMessage{"k": nil}}, `variable "k"`},
	} {
		if _, err := f.Render(c.req); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for template, want := range map[string]string{
		"{% if %}":                       "template line 1",
		"fixed text":                     "does not show a user's message",
		"{{ raise_exception('never') }}": "never",
		"a\n\n{% include 'x' %}":         "template line 3: tag 'include' is not supported",
	} {
		if _, err := NewFormat(template, FormatOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", template, err, want)
		}
	}
}
