package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"atoll/core/agent"
	"atoll/core/event"
	"atoll/core/llm"
	"atoll/core/llm/script"
	"atoll/core/permission"
	"atoll/core/session"
	"atoll/core/tool"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fakeTool is a tool that runs in the test.
type fakeTool struct {
	name   string
	schema string
	access permission.Access
	run    func(ctx context.Context, args map[string]any) (tool.Result, error)
}

func (f *fakeTool) Spec() tool.Spec {
	return tool.Spec{Name: f.name, Description: f.name, Parameters: json.RawMessage(f.schema), Access: f.access}
}

func (f *fakeTool) Request(c tool.Call) (permission.Request, error) {
	var in struct{ Path string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return permission.Request{}, err
	}
	return permission.Request{Access: f.access, Paths: []string{in.Path}}, nil
}

func (f *fakeTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	var args map[string]any
	if err := json.Unmarshal(c.Input, &args); err != nil {
		return tool.Result{}, err
	}
	return f.run(ctx, args)
}

const pathSchema = `{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"]}`

// fakes are tools over a map of files; "counter" counts up with each read, "big" is long.
func fakes(started chan<- struct{}) []tool.Tool {
	files := map[string]string{
		"a.txt": "alpha\n", "b.txt": "beta\n", "big": strings.Repeat("0123456789", 4000),
	}
	count := 0
	return []tool.Tool{
		&fakeTool{"read", pathSchema, permission.Read, func(_ context.Context, a map[string]any) (tool.Result, error) {
			p := a["path"].(string)
			if p == "counter" {
				count++
				return tool.Result{Output: fmt.Sprint(count)}, nil
			}
			if text, ok := files[p]; ok {
				return tool.Result{Output: text}, nil
			}
			return tool.Result{Output: "no such file: " + p, IsError: true}, nil
		}},
		&fakeTool{"write", `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}`,
			permission.Write, func(_ context.Context, a map[string]any) (tool.Result, error) {
				p := a["path"].(string)
				files[p] = a["content"].(string)
				return tool.Result{Output: "wrote " + p, Diff: "--- a/" + p + "\n+++ b/" + p + "\n"}, nil
			}},
		&fakeTool{"wait", `{"type":"object","properties":{}}`, permission.Read, func(ctx context.Context, _ map[string]any) (tool.Result, error) {
			close(started)
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}},
		&fakeTool{"broken", `{"type":"object","properties":{}}`, permission.Read, func(context.Context, map[string]any) (tool.Result, error) {
			return tool.Result{}, errors.New("the tool fell over")
		}},
		&fakeTool{"missing", `{"type":"object","properties":{}}`, permission.Read, func(context.Context, map[string]any) (tool.Result, error) {
			return tool.Result{}, fmt.Errorf("%w: no sandbox here", tool.ErrUnavailable)
		}},
	}
}

type rig struct {
	t       *testing.T
	home    *session.Home
	sess    *session.Session
	agent   *agent.Agent
	broker  *permission.Broker
	started chan struct{}
}

type rigOptions struct {
	mode        permission.Mode
	rules       []permission.Rule
	interactive bool
	maxSteps    int
	nudge       bool
	view        *agent.View
	context     int
}

func newRig(t *testing.T, scriptText string, o rigOptions) *rig {
	t.Helper()
	m, err := script.New(strings.NewReader(scriptText), script.Options{Context: o.context})
	if err != nil {
		t.Fatal(err)
	}
	return newRigModel(t, m, o)
}

func newRigModel(t *testing.T, m llm.Model, o rigOptions) *rig {
	t.Helper()
	if o.mode == "" {
		o.mode = permission.WorkspaceWrite
	}
	r := &rig{t: t, started: make(chan struct{})}
	r.home = session.NewHome(session.Options{Dir: t.TempDir(), Clock: &fixedClock{}, Random: bytes.NewReader(make([]byte, 64))})
	var err error
	r.sess, err = r.home.Create(session.Start{Workspace: "/w", Mode: string(o.mode), Model: "script"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.sess.Close() })
	reg, err := tool.NewRegistry(fakes(r.started)...)
	if err != nil {
		t.Fatal(err)
	}
	r.broker = permission.NewBroker(permission.Policy{Mode: o.mode, User: o.rules}, o.interactive)
	r.agent = agent.New(agent.Options{
		Session: r.sess, Model: m, Tools: reg, Broker: r.broker, System: "system", MaxSteps: o.maxSteps, Nudge: o.nudge, View: o.view,
	})
	return r
}

// fixedClock stands at one moment, so that every delta is written at once: the last write is always "long ago".
type fixedClock struct{}

func (*fixedClock) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func (*fixedClock) AfterFunc(time.Duration, func()) func() { return func() {} }

// journal returns the session's events as JSON lines without times, and checks that a reopened session is the same.
func (r *rig) journal() string {
	r.t.Helper()
	live := r.sess.State()
	if err := r.sess.Close(); err != nil {
		r.t.Fatal(err)
	}
	again, err := r.home.View("/w", r.sess.ID())
	if err != nil {
		r.t.Fatal(err)
	}
	if !reflect.DeepEqual(live, again.Clone()) {
		r.t.Errorf("the session differs when it is opened again:\n%+v\n%+v", live, again)
	}
	var out strings.Builder
	if err := r.home.Events("/w", r.sess.ID(), func(e event.Event) error {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		out.WriteString(strings.Replace(string(b), `"time":"2026-01-02T03:04:05.000Z",`, "", 1) + "\n")
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return out.String()
}

// Each txtar file is a case: the script, the prompts (one a line), options, and the journal that must come out.
func TestTurns(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			part := func(name string) *txtar.File {
				for i := range ar.Files {
					if ar.Files[i].Name == name {
						return &ar.Files[i]
					}
				}
				ar.Files = append(ar.Files, txtar.File{Name: name})
				return &ar.Files[len(ar.Files)-1]
			}
			var o rigOptions
			for line := range strings.Lines(string(part("options").Data)) {
				key, val, _ := strings.Cut(strings.TrimSpace(line), " ")
				switch key {
				case "mode":
					o.mode = permission.Mode(val)
				case "rule":
					var rule permission.Rule
					if err := json.Unmarshal([]byte(val), &rule); err != nil {
						t.Fatal(err)
					}
					o.rules = append(o.rules, rule)
				case "steps":
					fmt.Sscan(val, &o.maxSteps)
				case "context":
					fmt.Sscan(val, &o.context)
				case "nudge":
					o.nudge = true
				default:
					t.Fatal("unknown option", key)
				}
			}
			r := newRig(t, string(part("script").Data), o)
			outcome := ""
			for line := range strings.Lines(string(part("prompts").Data)) {
				out := r.agent.Turn(context.Background(), strings.TrimSuffix(line, "\n"))
				outcome += fmt.Sprintf("stop=%s steps=%d needs_user=%v err=%v text=%q\n", out.Stop, out.Steps, out.NeedsUser, out.Err, out.Text)
			}
			got := r.journal()
			if *update {
				part("outcome").Data = []byte(outcome)
				part("journal").Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := string(part("outcome").Data); outcome != want {
				t.Errorf("outcome:\n%swant:\n%s", outcome, want)
			}
			if want := string(part("journal").Data); got != want {
				t.Errorf("journal:\n%swant:\n%s", got, want)
			}
		})
	}
}

func TestCancelWhileTheModelWrites(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	// A model that says a part and then waits for the end of the turn.
	r := newRigModel(t, modelFunc(func(ctx context.Context, req *llm.Request, emit func(llm.Chunk) error) (*llm.Result, error) {
		if err := emit(llm.TextDelta{Text: "half a "}); err != nil {
			return nil, err
		}
		if err := emit(llm.ToolCall{Name: "read", Arguments: json.RawMessage(`{"path":"a.txt"}`)}); err != nil {
			return nil, err
		}
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}), rigOptions{})
	out := r.agent.Turn(ctx, "go")
	if out.Stop != event.StopCancelled || out.Text != "half a " || !errors.Is(out.Err, context.Canceled) {
		t.Fatalf("%+v", out)
	}
	j := r.journal()
	for _, want := range []string{`"text":"half a "`, `"output":"not run: the step did not end"`, `"message_aborted","message":"m2","reason":"cancelled"`, `"stop":"cancelled"`} {
		if !strings.Contains(j, want) {
			t.Errorf("no %s in\n%s", want, j)
		}
	}
	s, err := r.home.Open("/w", r.sess.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if ms := s.ForModel(); len(ms) != 1 || ms[0].Text() != "go" {
		t.Errorf("the model would see %+v", ms)
	}
}

// modelFunc is a model that is one function.
type modelFunc func(ctx context.Context, req *llm.Request, emit func(llm.Chunk) error) (*llm.Result, error)

func (modelFunc) Info() llm.Info { return llm.Info{ID: "func"} }
func (modelFunc) Close() error   { return nil }
func (modelFunc) CountTokens(context.Context, *llm.Request) (int, error) {
	return 0, nil
}
func (f modelFunc) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk) error) (*llm.Result, error) {
	return f(ctx, req, emit)
}

func TestCancelWhileAToolRuns(t *testing.T) {
	r := newRig(t, `{"tool_calls": [{"name": "wait"}, {"name": "read", "arguments": {"path": "a.txt"}}]}`, rigOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-r.started
		cancel()
	}()
	out := r.agent.Turn(ctx, "go")
	if out.Stop != event.StopCancelled {
		t.Fatalf("%+v", out)
	}
	st := r.sess.State()
	calls := st.Messages[1].Calls()
	if len(calls) != 2 || !strings.Contains(calls[0].Output, "cancelled by the user; it may have taken effect") ||
		!strings.Contains(calls[1].Output, "cancelled by the user before it ran") || st.Messages[1].Aborted {
		t.Fatalf("%+v", calls)
	}
	r.journal()
}

func TestCancelWhilePermissionIsAsked(t *testing.T) {
	r := newRig(t, `{"tool_calls": [{"name": "write", "arguments": {"path": "n", "content": ""}}]}`,
		rigOptions{interactive: true, rules: []permission.Rule{{Tool: "*", Action: permission.Ask}}})
	ctx, cancel := context.WithCancel(context.Background())
	sub := r.sess.Subscribe(100)
	go func() {
		for e := range sub.C {
			if _, ok := e.Body.(event.PermissionAsked); ok {
				cancel()
			}
		}
	}()
	out := r.agent.Turn(ctx, "go")
	if out.Stop != event.StopCancelled || out.NeedsUser {
		t.Fatalf("%+v", out)
	}
	if j := r.journal(); !strings.Contains(j, `"outcome":"cancelled"`) {
		t.Error(j)
	}
}

func TestPermissionIsAsked(t *testing.T) {
	for _, c := range []struct {
		reply   permission.Reply
		asks    int
		outcome string
		ran     int
	}{
		{permission.ReplyOnce, 2, "allowed_once", 2},
		{permission.ReplySession, 1, "allowed_session", 2},
		{permission.ReplyReject, 2, "rejected", 0},
		{"nonsense", 2, "rejected", 0},
	} {
		t.Run(string(c.reply), func(t *testing.T) {
			r := newRig(t, `{"tool_calls": [{"name": "write", "arguments": {"path": "n", "content": "1"}}]}
{"tool_calls": [{"name": "write", "arguments": {"path": "n", "content": "2"}}]}
{"text": "ok"}`,
				rigOptions{interactive: true, rules: []permission.Rule{{Tool: "write", Action: permission.Ask}}})
			sub := r.sess.Subscribe(0)
			asks := 0
			go func() {
				for e := range sub.C {
					if b, ok := e.Body.(event.PermissionAsked); ok {
						asks++
						if !r.broker.Resolve(b.ID, c.reply) || r.broker.Resolve(b.ID, permission.ReplyOnce) {
							t.Error("the first answer must count, and no second")
						}
					}
				}
			}()
			out := r.agent.Turn(context.Background(), "go")
			sub.Close()
			if out.Stop != event.StopEnd || out.NeedsUser {
				t.Errorf("%+v", out)
			}
			if asks != c.asks {
				t.Errorf("asked %d times, want %d", asks, c.asks)
			}
			j := r.journal()
			if !strings.Contains(j, `"outcome":"`+c.outcome) || strings.Count(j, `"tool_started"`) != c.ran {
				t.Error(j)
			}
		})
	}
}

func TestSpill(t *testing.T) {
	r := newRig(t, `{"tool_calls": [{"name": "read", "arguments": {"path": "big"}}]}
{"text": "ok"}`, rigOptions{})
	r.agent.Turn(context.Background(), "go")
	call := r.sess.State().Messages[1].Calls()[0]
	b, err := os.ReadFile(filepath.Join(r.sess.SpillDir(), call.CallID+".txt"))
	if err != nil || len(b) != 40000 {
		t.Fatal(len(b), err)
	}
	if n := len(call.Output); n > tool.MaxOutput+300 || !strings.Contains(call.Output, "10000 characters left out; full output: "+r.sess.SpillDir()) {
		t.Fatal(n, call.Output[14900:15400])
	}
	if err := r.sess.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.home.Delete("/w", r.sess.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.sess.SpillDir()); !os.IsNotExist(err) {
		t.Fatal("the spilled output outlives its session:", err)
	}
}
