package agent_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"atoll/core/agent"
	"atoll/core/event"
	"atoll/core/llm"
	"atoll/core/llm/script"
	"atoll/core/permission"
)

// watched notes the tool choice of each step.
type watched struct {
	llm.Model
	choices []llm.ToolChoice
}

func (w *watched) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk) error) (*llm.Result, error) {
	w.choices = append(w.choices, req.ToolChoice)
	return w.Model.Generate(ctx, req, emit)
}

// files of the workspace in which find looks.
var files = map[string]string{
	"sum.go":      "func sum(a, b int) int {\n\treturn a - b // the sum\n}\n",
	"sum_test.go": "func testSum() bool {\n\treturn sum(1, 2) == 3\n}\n",
}

func find(_ context.Context, line string) (paths []string) {
	for name, text := range files {
		if strings.Contains(text, line) {
			paths = append(paths, name)
		}
	}
	return paths
}

func TestToolChoice(t *testing.T) {
	const (
		fixed = "Here it is:\n\n```go\nfunc sum(a, b int) int {\n\treturn a + b // the sum\n}\n```\nNow it adds."
		same  = "It is:\n```go\nfunc sum(a, b int) int {\n\treturn a - b // the sum\n}\n```"
		other = "Such as:\n```go\nfunc product(a, b int) int {\n\treturn a * b // nothing known\n}\n```"
		both  = "See:\n```go\nfunc sum(a, b int) int {\n\treturn sum(1, 2) == 3\n\treturn something else\n}\n```"
		open  = "See:\n```go\nfunc sum(a, b int) int {\n\treturn a + b // the sum"
	)
	var (
		auto = llm.ToolChoice{}
		none = llm.ToolChoice{Mode: llm.ToolNone}
		edit = llm.ToolChoice{Mode: llm.ToolRequired, Name: "edit", Given: []llm.Argument{
			{Name: "path", Value: "sum.go"}, {Name: "old", Value: "\treturn a - b // the sum"},
		}}
	)
	say := func(text string) string {
		b, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	call := func(name, args string) string {
		return `{"tool_calls": [{"name": "` + name + `", "arguments": ` + args + `}]}`
	}
	write, read := call("write", `{"path": "sum.go", "content": "x"}`), call("read", `{"path": "a.txt"}`)
	for _, c := range []struct {
		name   string
		mode   permission.Mode
		steps  []string
		want   []llm.ToolChoice
		starts int // tools that ran
	}{
		{"changed code is shown", "", []string{say(fixed), write, say("done")}, []llm.ToolChoice{auto, edit, auto}, 1},
		{"only once", "", []string{say(fixed), say(fixed)}, []llm.ToolChoice{auto, edit}, 0},
		{"not where nothing can be written", permission.ReadOnly, []string{say(fixed)}, []llm.ToolChoice{auto}, 0},
		{"not after a change", "", []string{write, say("```go\nfunc testSum() bool {\n\treturn true // always so\n}\n```")}, []llm.ToolChoice{auto, auto}, 1},
		{"code as it is", "", []string{say(same)}, []llm.ToolChoice{auto}, 0},
		{"code of no file", "", []string{say(other)}, []llm.ToolChoice{auto}, 0},
		{"code of two files", "", []string{say(both)}, []llm.ToolChoice{auto}, 0},
		{"a block that is not closed", "", []string{say(open)}, []llm.ToolChoice{auto}, 0},
		{"a call of no tool", "", []string{say("```json\n{\n  \"name\": \"sum\",\n  \"arguments\": {\"a\": 1}\n}\n```"), say("3")}, []llm.ToolChoice{auto, none}, 0},
		{"a call of no tool behind words", "", []string{say("So:\n{\"name\": \"sum\", \"arguments\": {}}"), say("3")}, []llm.ToolChoice{auto, none}, 0},
		{"JSON that is an answer", "", []string{say("```json\n{\"name\": \"atoll\", \"version\": 1}\n```")}, []llm.ToolChoice{auto}, 0},
		{"a change repeated", "", []string{write, write, say("done")}, []llm.ToolChoice{auto, auto, none}, 1},
		{"a change repeated after a look", "", []string{write, read, write, say("done")}, []llm.ToolChoice{auto, auto, auto, auto}, 3},
		{"a look repeated", "", []string{read, read, say("done")}, []llm.ToolChoice{auto, auto, none}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := script.New(strings.NewReader(strings.Join(c.steps, "\n")), script.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := &watched{Model: m}
			r := newRigModel(t, w, rigOptions{nudge: true, mode: c.mode, view: &agent.View{
				Overview: func(context.Context) string { return "" },
				Find:     find,
				Read:     func(_ context.Context, path string) string { return files[path] },
				Edit:     "edit",
			}})
			if out := r.agent.Turn(context.Background(), "go"); out.Stop != event.StopEnd {
				t.Errorf("%+v", out)
			}
			if !reflect.DeepEqual(w.choices, c.want) {
				t.Errorf("choices %+v, want %+v", w.choices, c.want)
			}
			if n := strings.Count(r.journal(), `"tool_started"`); n != c.starts {
				t.Errorf("%d tools ran, want %d", n, c.starts)
			}
		})
	}
}
