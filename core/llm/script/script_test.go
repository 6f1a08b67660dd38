package script

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"atoll/core/llm"
	"atoll/core/message"
)

func TestLoadErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"text": 1}`, "line 1"},
		{"{}\n\n{\"txt\": \"x\"}", `line 3: json: unknown field "txt"`},
		{`{"expect": {"contain": "x"}}`, `unknown field "contain"`},
		{`{"tool_calls": [{"name": "x", "args": {}}]}`, `unknown field "args"`},
		{`{} {}`, "text after the object"},
		{`[]`, "line 1"},
		{`{"text": "x"`, "line 1"},
		{`{"stop": "context"}`, `unknown stop "context"`},
		{`{"sleep_ms": -1}`, "negative"},
		{`{"tool_calls": [{"arguments": {}}]}`, "tool_calls[0] without name"},
		{`{"error": {"kind": "gremlins"}}`, `unknown error kind "gremlins"`},
		{`{"raw": "x", "text": "y"}`, "raw stands alone"},
		{`{"raw": "x"}`, "no parser"},
		{`{"family": "hermes"}`, "family without raw"},
		{strings.Repeat("x", maxLine+1), "line 1"},
	} {
		_, err := New(strings.NewReader(c.in), Options{})
		var le *llm.Error
		if !errors.As(err, &le) || le.Kind != llm.Load || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v", c.in, err)
		}
	}
}

func mustNew(t *testing.T, text string, o Options) *Model {
	t.Helper()
	m, err := New(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func run(t *testing.T, m *Model) ([]llm.Chunk, *llm.Result, error) {
	t.Helper()
	var out []llm.Chunk
	res, err := m.Generate(context.Background(), &llm.Request{Messages: []message.Message{message.NewUser("m1", "hi")}}, func(c llm.Chunk) error {
		out = append(out, c)
		return nil
	})
	return out, res, err
}

func TestSteps(t *testing.T) {
	m := mustNew(t, "\ufeff{\"text\": \"äöü!\", \"reasoning\": \"rr\", \"chunk\": 3}\n\n"+
		`{"tool_calls": [{"name": "a"}, {"name": "b", "arguments": {"x": 1}}, {"name": "c", "arguments": [1]}], "stop": "length"}`+"\n"+
		`{"text": "t", "error": {"kind": "auth", "message": "no key"}}`, Options{})
	out, res, err := run(t, m)
	want := []llm.Chunk{llm.ReasoningDelta{Text: "rr"}, llm.TextDelta{Text: "äö"}, llm.TextDelta{Text: "ü!"}}
	if err != nil || res.Stop != llm.StopEnd || !reflect.DeepEqual(out, want) {
		t.Fatal(out, res, err)
	}
	out, res, err = run(t, m)
	want = []llm.Chunk{llm.ToolCall{Index: 0, Name: "a", Arguments: []byte("{}")}, llm.ToolCall{Index: 1, Name: "b", Arguments: []byte(`{"x": 1}`)},
		llm.ToolCallError{Index: 2, Name: "c", Raw: "[1]", Reason: "the arguments are not a JSON object"}}
	if err != nil || res.Stop != llm.StopLength || !reflect.DeepEqual(out, want) {
		t.Fatal(out, res, err)
	}
	if res.Usage.Prompt == 0 || res.Usage.Cached != res.Usage.Prompt {
		t.Errorf("the same request again: %+v", res.Usage)
	}
	out, _, err = run(t, m)
	var le *llm.Error
	if len(out) != 1 || !errors.As(err, &le) || le.Kind != llm.Auth || err.Error() != "no key" {
		t.Fatal(out, err)
	}
	if _, _, err = run(t, m); err == nil || err.Error() != "script: step 4 was asked for, the file has 3" {
		t.Fatal(err)
	}
}

// doubling is a parser that doubles what it gets and ends with a call.
type doubling struct{}

func (doubling) Write(s string) ([]llm.Chunk, error) {
	if s == "!" {
		return nil, errors.New("bad piece")
	}
	return []llm.Chunk{llm.TextDelta{Text: s + s}}, nil
}
func (doubling) Close() ([]llm.Chunk, error) { return []llm.Chunk{llm.ToolCall{Name: "end"}}, nil }

func TestRaw(t *testing.T) {
	newParser := func(family string, tools []llm.ToolSpec) (Parser, error) {
		if family != "hermes" {
			return nil, fmt.Errorf("no family %s", family)
		}
		return doubling{}, nil
	}
	m := mustNew(t, `{"raw": "ab", "chunk": 1}`+"\n"+`{"raw": "!"}`+"\n"+`{"raw": "x", "family": "odd"}`, Options{NewParser: newParser})
	out, _, err := run(t, m)
	if err != nil || !reflect.DeepEqual(out, []llm.Chunk{llm.TextDelta{Text: "aa"}, llm.TextDelta{Text: "bb"}, llm.ToolCall{Name: "end"}}) {
		t.Fatal(out, err)
	}
	if _, _, err := run(t, m); err == nil || err.Error() != "script: line 2: bad piece" {
		t.Fatal(err)
	}
	if _, _, err := run(t, m); err == nil || err.Error() != "script: line 3: no family odd" {
		t.Fatal(err)
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	m := mustNew(t, `{"text": "abc", "chunk": 1, "sleep_ms": 100000000}`, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(time.Millisecond, cancel)
	_, err := m.Generate(ctx, &llm.Request{}, func(llm.Chunk) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestEmitErrorIsReturned(t *testing.T) {
	m := mustNew(t, `{"text": "abc"}`, Options{})
	own := errors.New("own")
	if _, err := m.Generate(context.Background(), &llm.Request{}, func(llm.Chunk) error { return own }); err != own {
		t.Fatal(err)
	}
}

func FuzzNew(f *testing.F) {
	f.Add([]byte("{\"text\": \"x\", \"chunk\": 1}\n{\"tool_calls\": [{\"name\": \"a\", \"arguments\": {}}]}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := New(strings.NewReader(string(in)), Options{})
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for range m.steps {
			if _, err := m.Generate(ctx, &llm.Request{}, func(llm.Chunk) error { return nil }); err == nil {
				t.Fatal("runs although its context ended")
			}
		}
	})
}
