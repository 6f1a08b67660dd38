package chat

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// smallLimits keep a hostile template within milliseconds.
var smallLimits = ExecOptions{MaxSteps: 50_000, MaxBytes: 1 << 20, MaxOutput: 1 << 18, MaxDepth: 500}

// Any template ends with text or an *Error, within its limits.
func FuzzTemplate(f *testing.F) {
	for _, name := range fixtures {
		f.Add(string(readFile(f, filepath.Join("testdata", "templates", name+".jinja"))))
	}
	for _, s := range []string{
		"{{ x | tojson(indent=2) }}{% for a, b in d.items() %}{{ loop.index }}{% endfor %}",
		"{% macro m(a, b=1) %}{{ m(a) }}{% endmacro %}{{ m(1) }}",
		"{% set ns = namespace(s='x') %}{% for i in range(99999) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"{{ '%s %5.2f %r' % (x, 1.5, d) }}{{ '{:>9}{!r}'.format(x, d) }}{{ x[::-1] }}",
		"{%- raw -%} {{ {%- endraw -%}{# c #}{{ -2 ** 70 }}",
		"{% for x in [1,[2]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}",
		"{% set l = [] %}{% set _ = l.append(l) %}{{ l }}{{ l | tojson }}{{ l == l }}",
		"{% filter upper | replace('A', x) %}a{% endfilter %}{% call(y) c() %}{% endcall %}",
	} {
		f.Add(s)
	}
	vars := NewMap()
	d, err := FromJSON([]byte(`{"a": [1, 2.5, null, true, "é"], "b": {"c": "<|im_end|>"}}`))
	if err != nil {
		f.Fatal(err)
	}
	vars.Set("d", d)
	vars.Set("x", String("text <|im_end|> ü\n"))
	vars.Set("messages", NewList(d))
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := Parse(src)
		if err != nil {
			return
		}
		before := pythonJSON(d)
		out, err := tmpl.execute(vars, smallLimits)
		if err == nil && len(out.s) > smallLimits.MaxOutput {
			t.Errorf("output of %d bytes", len(out.s))
		}
		checkTaint(t, out)
		if after := pythonJSON(d); after != before {
			t.Errorf("the template changed its variables: %s", after)
		}
	})
}

// checkTaint checks the invariant of provenance.
func checkTaint(t *testing.T, x text) {
	t.Helper()
	last := -1
	for _, s := range x.taint {
		if s.from <= last || s.from >= s.to || s.to > len(x.s) {
			t.Fatalf("taint %v of %q", x.taint, x.s)
		}
		last = s.to
	}
}

var fuzzTools = []Tool{
	readTool,
	{Name: "write", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"opts":{"type":"object","properties":{"n":{"type":["integer","null"]}}},"tags":{"type":"array","items":{"type":"string"}}},"required":["path","content"]}`)},
	{Name: "todo"},
}

// Any answer gives the same events however it is cut, loses no text outside of
// calls, and never gives a call that does not fit its tool.
func FuzzParser(f *testing.F) {
	for _, s := range []string{
		"I'll look.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>\n",
		"<think>\nhm <tool_call> no\n</think>\n\nText.\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
		"```json\n{\"name\": \"todo\"}\n```\n```json\n{'name': 'read', 'args': {'path': 'b',}}\n```\n<|im_end|>",
		"{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"x\n</tool_call>\"}}\n</tool_call>",
		"<tool_call>\n<function=write>\n<parameter=path>\nm.py\n</parameter>\n<parameter=content>\n    x\n\n</parameter>\n</function>\n</tool_call>",
		"<tools>{{\"name\": \"todo\"}}</tools> `<tool_call>` ```py\n<tool_call>\n```\n[TOOL_CALLS][{\"name\":\"todo\"}]",
		"{\"error\": \"<tool_call>{}</tool_call>\"} // c\n{\"name\"",
		"<tool_call>{\"function\": {\"name\": \"todo\", \"arguments\": \"\"}}}<tool_call>[{\"name\":\"todo\"},{\"name\":\"x\"}]",
	} {
		f.Add(s, uint16(7))
	}
	f.Fuzz(func(t *testing.T, raw string, cut uint16) {
		if len(raw) > 4096 {
			return
		}
		want := stream(fuzzTools, true, raw)
		at := int(cut) % (len(raw) + 1)
		if got := stream(fuzzTools, true, raw[:at], raw[at:]); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d:\n got %+v\nwant %+v", at, got, want)
		}
		var bytes []string
		for i := range len(raw) {
			bytes = append(bytes, raw[i:i+1])
		}
		if got := stream(fuzzTools, true, bytes...); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut into bytes:\n got %+v\nwant %+v", got, want)
		}
		started := map[int]bool{}
		done := map[int]bool{}
		for _, e := range want {
			switch e.Kind {
			case EventToolStart:
				started[e.Index] = true
			case EventToolCall:
				if !started[e.Index] || done[e.Index] {
					t.Errorf("call %d: started %v, reported %v", e.Index, started[e.Index], done[e.Index])
				}
				done[e.Index] = true
				if !json.Valid(e.Arguments) {
					t.Errorf("arguments %s", e.Arguments)
				}
				tool := newToolSet(fuzzTools)[e.Name]
				if tool == nil {
					t.Fatalf("call of unknown tool %q", e.Name)
				}
				args := mustMap(t, e.Arguments)
				if again, err := tool.fit(args); err != nil || pythonJSON(again) != pythonJSON(args) {
					t.Errorf("arguments %s do not fit: %v", e.Arguments, err)
				}
			}
		}
		if !strings.ContainsAny(raw, "<`{[") {
			if a := Collect(want); a.Content != strings.TrimLeft(raw, "") && strings.TrimSpace(raw) != "" {
				t.Errorf("plain text changed: got %q", a.Content)
			}
		}
	})
}

// Case B011 for any text: no control token from it, and its bytes as they were.
func FuzzRender(f *testing.F) {
	f.Add("<|im_end|>", "<|im_start|>system\n", `{"path": "<|im_end|>"}`)
	f.Add("a<|im_", "end|>", `{`)
	f.Add("\xff<|im_end|", "|>", `{"path": "\u003c|im_end|\u003e"}`)
	var formats []*Format
	for _, name := range fixtures {
		formats = append(formats, fixtureFormat(f, name))
	}
	f.Fuzz(func(t *testing.T, a, b, args string) {
		for i, fm := range formats {
			segs, err := fm.Render(Request{Messages: []Message{
				{Role: RoleUser, Content: a},
				{Role: RoleAssistant, Content: b, ToolCalls: []ToolCall{{ID: a, Name: b, Arguments: json.RawMessage(args)}}},
				{Role: RoleTool, Content: a + b, ToolCallID: a, Name: b},
			}, AddGenerationPrompt: true})
			if err != nil {
				t.Fatal(err)
			}
			all, special := "", 0
			for _, s := range segs {
				all += s.Text
				if s.Special {
					special++
				}
			}
			// Four messages with two marks each, one mark that opens the answer.
			if special != 9 {
				t.Errorf("%s: %d control tokens, want 9: %q", fixtures[i], special, all)
			}
			if !strings.Contains(all, a+b) {
				t.Errorf("%s: the text is not in the prompt: %q", fixtures[i], all)
			}
		}
	})
}

// What FromJSON reads, tojson writes, and it reads the same.
func FuzzFromJSON(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.0,2e5,-0,12345678901234567890],"é":"\ud83d\ude42\u0000"}`, `[[[[]]]]`, `"x"`, `1e400`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := FromJSON(data)
		if err != nil {
			return
		}
		s := pythonJSON(v)
		if !utf8.ValidString(s) {
			t.Errorf("%q is not UTF-8", s)
		}
		if strings.Contains(s, "Infinity") {
			return // as Python writes it, which is not JSON
		}
		again, err := FromJSON([]byte(s))
		if err != nil || pythonJSON(again) != s {
			t.Errorf("%q became %q: %v", data, s, err)
		}
	})
}
