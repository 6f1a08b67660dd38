package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atoll/core/event"
	"atoll/core/service"
	"atoll/core/tool"
)

// compiled keeps the compiled tools for all tests of a run.
var compiled string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "atoll-app-test")
	if err != nil {
		panic(err)
	}
	compiled = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// place is a workspace with its own data directory.
type place struct {
	t    *testing.T
	opts Options
}

func newPlace(t *testing.T, files map[string]string) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, opts: Options{
		Workspace: filepath.Join(root, "ws"), DataDir: filepath.Join(root, "data"),
		ConfigDir: filepath.Join(root, "config"), CacheDir: compiled,
	}}
	for _, d := range []string{p.opts.Workspace, p.opts.ConfigDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		p.put(filepath.Join(p.opts.Workspace, name), text)
	}
	return p
}

func (p *place) put(path, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) script(lines ...string) *place {
	path := filepath.Join(filepath.Dir(p.opts.Workspace), "script.jsonl")
	p.put(path, strings.Join(lines, "\n"))
	p.opts.Model = "script:" + path
	return p
}

// skipWithoutTools skips a test in a clone in which `make wasm` has not run.
func skipWithoutTools(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, tool.ErrUnavailable) || !strings.Contains(err.Error(), "make wasm") {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// run starts (or with id resumes) a session, prompts, and returns the result and the events.
func (p *place) run(id, text string) (service.Result, []event.Event) {
	p.t.Helper()
	svc, err := Open(p.opts)
	if err != nil {
		p.t.Fatal(err)
	}
	defer svc.Close()
	var s *service.Session
	if id == "" {
		s, err = svc.Start(context.Background())
	} else {
		s, err = svc.Resume(context.Background(), id)
	}
	skipWithoutTools(p.t, err)
	if err != nil {
		p.t.Fatal(err)
	}
	sub := s.Subscribe(10)
	var events []event.Event
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range sub.C {
			events = append(events, e)
		}
	}()
	res := s.Prompt(context.Background(), text)
	if err := s.Close(); err != nil {
		p.t.Error(err)
	}
	<-done
	return res, events
}

func (p *place) read(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.opts.Workspace, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

func call(name string, args any) string {
	b, err := json.Marshal(map[string]any{"tool_calls": []any{map[string]any{"name": name, "arguments": args}}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

type m = map[string]string

// The whole way: a scripted model, the real tools in the sandbox, the journal.
func TestFindAndFix(t *testing.T) {
	p := newPlace(t, m{"src/calc.py": "def add(a, b):\n    return a - b\n", "AGENTS.md": "Use tabs."}).script(
		call("grep", m{"pattern": "return"}),
		call("read", m{"path": "src/calc.py"}),
		call("edit", m{"path": "src/calc.py", "old": "    return a - b", "new": "    return a + b"}),
		`{"text": "Fixed it.", "expect": {"contains": "Use tabs.", "tools": ["read", "write", "edit", "ls", "glob", "grep"]}}`,
	)
	p.opts.Mode = "workspace-write"
	res, events := p.run("", "fix add")
	if res.IsError || res.ExitCode != 0 || res.Text != "Fixed it." || res.Steps != 4 || res.Stop != event.StopEnd {
		t.Fatalf("%+v", res)
	}
	if got := p.read("src/calc.py"); got != "def add(a, b):\n    return a + b\n" {
		t.Fatalf("%q", got)
	}
	var results []event.ToolResult
	for _, e := range events {
		if r, ok := e.Body.(event.ToolResult); ok {
			results = append(results, r)
		}
	}
	if len(results) != 3 {
		t.Fatal(results)
	}
	if !strings.Contains(results[0].Output, "src/calc.py:2:") || results[0].Title != "grep ." {
		t.Errorf("%+v", results[0])
	}
	want := "--- a/src/calc.py\n+++ b/src/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
	if results[2].Diff != want || results[0].Diff != "" || results[1].Diff != "" {
		t.Errorf("diff %q", results[2].Diff)
	}
	b, err := json.Marshal(res)
	if err != nil || !strings.HasPrefix(string(b), `{"type":"result","is_error":false,"text":"Fixed it.","session":"`) {
		t.Errorf("%s %v", b, err)
	}
}

func TestReadOnly(t *testing.T) {
	p := newPlace(t, m{"a.txt": "text"}).script(
		call("write", m{"path": "b.txt", "content": "x"}), call("edit", m{"path": "a.txt", "old": "text", "new": "y"}), `{"text": "no"}`)
	res, _ := p.run("", "write")
	if res.ExitCode != service.ExitPermission || res.Stop != event.StopPermission || !res.IsError || res.Error == "" {
		t.Fatalf("%+v", res)
	}
	if p.read("a.txt") != "text" {
		t.Fatal("changed")
	}
	if _, err := os.Stat(filepath.Join(p.opts.Workspace, "b.txt")); !os.IsNotExist(err) {
		t.Fatal("written")
	}
}

// A denial outweighs what came of it: here the script has no further step.
func TestDeniedThenError(t *testing.T) {
	p := newPlace(t, nil).script(call("write", m{"path": "b.txt", "content": "x"}))
	if res, _ := p.run("", "write"); res.ExitCode != service.ExitPermission || res.Stop != event.StopError {
		t.Fatalf("%+v", res)
	}
}

// A session keeps its mode, unless the user says another; the model sees the earlier turns.
func TestResume(t *testing.T) {
	p := newPlace(t, nil).script(`{"text": "first answer"}`)
	p.opts.Mode = "workspace-write"
	res, _ := p.run("", "first question")
	p.script(call("write", m{"path": "n", "content": "1"}), `{"text": "second", "expect": {"contains": "first answer"}}`)
	p.opts.Mode = ""
	again, events := p.run(res.Session, "second question")
	if again.ExitCode != 0 || again.Session != res.Session || again.Mode != "workspace-write" {
		t.Fatalf("%+v", again)
	}
	p.script(call("write", m{"path": "n", "content": "2"}), `{"text": "third"}`)
	p.opts.Mode = "read-only"
	third, _ := p.run(res.Session, "third question")
	if third.ExitCode != service.ExitPermission || p.read("n") != "1" {
		t.Fatalf("%+v", third)
	}
	if events[0].Seq == 0 || events[len(events)-1].Seq == 0 {
		t.Error("events without numbers")
	}
	svc, err := Open(p.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	list, err := svc.List()
	if err != nil || len(list) != 1 || list[0].Title != "first question" || list[0].Turns != 3 || list[0].Mode != "read-only" {
		t.Fatalf("%+v %v", list, err)
	}
	if id, err := svc.Last(); err != nil || id != res.Session {
		t.Fatal(id, err)
	}
	st, err := svc.Show(res.Session)
	if err != nil || st.Turn != 3 {
		t.Fatal(st.Turn, err)
	}
	if err := svc.Delete(res.Session); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Resume(context.Background(), res.Session); service.CodeOf(err) != service.ExitUsage {
		t.Fatal(err)
	}
}

// Rules are about what a path leads to, too.
func TestRules(t *testing.T) {
	p := newPlace(t, m{"secret/key": "s3cret", "open.txt": "fine"})
	if err := os.Symlink("secret", filepath.Join(p.opts.Workspace, "alias")); err != nil {
		t.Fatal(err)
	}
	p.put(filepath.Join(p.opts.ConfigDir, "config.jsonc"), "\ufeff{ // rules\r\n \"mode\": \"workspace-write\",\r\n \"permissions\": [ {\"tool\": \"*\", \"path\": \"secret/**\", \"action\": \"deny\"}, ],\r\n}\r\n")
	p.script(
		call("read", m{"path": "secret/key"}), call("read", m{"path": "alias/key"}), call("read", m{"path": "./x/../alias/key"}),
		call("read", m{"path": filepath.Join(p.opts.Workspace, "secret", "key")}), call("grep", m{"pattern": "s3"}),
		call("write", m{"path": "alias/new", "content": ""}), call("read", m{"path": "open.txt"}), `{"text": "done"}`)
	res, events := p.run("", "go")
	if res.ExitCode != 0 || res.Mode != "workspace-write" {
		t.Fatalf("%+v", res)
	}
	for _, e := range events {
		r, ok := e.Body.(event.ToolResult)
		if !ok {
			continue
		}
		if strings.Contains(r.Output, "s3cret") {
			t.Errorf("%s shows what a rule hides: %q", r.Name, r.Output)
		}
		if last := r.CallID == "c7"; r.IsError == last || !last && !strings.Contains(r.Output, "denied by rule") {
			t.Errorf("%+v", r)
		}
	}
}

// What atoll obeys is out of every tool's reach, also when it lies in the workspace.
func TestPrivate(t *testing.T) {
	p := newPlace(t, nil)
	p.opts.DataDir = filepath.Join(p.opts.Workspace, "data")
	p.opts.ConfigDir = filepath.Join(p.opts.Workspace, "config")
	p.put(filepath.Join(p.opts.ConfigDir, "config.jsonc"), "{}")
	p.opts.Mode = "workspace-write"
	p.script(call("write", m{"path": "config/config.jsonc", "content": "{\"mode\": \"workspace-write\"}"}),
		call("write", m{"path": "data/modes.json", "content": "{\"/\": \"workspace-write\"}"}),
		call("read", m{"path": "config/config.jsonc"}), call("glob", m{"pattern": "data/sessions/**"}), `{"text": "done"}`)
	res, events := p.run("", "go")
	if res.ExitCode != 0 {
		t.Fatalf("%+v", res)
	}
	if p.read("config/config.jsonc") != "{}" {
		t.Error("the settings were changed")
	}
	if _, err := os.Lstat(filepath.Join(p.opts.DataDir, ModesFile)); err == nil {
		t.Error("a mode was remembered")
	}
	for _, e := range events {
		if r, ok := e.Body.(event.ToolResult); ok && r.CallID != "c4" && !r.IsError {
			t.Errorf("%+v", r)
		} else if ok && r.CallID == "c4" && strings.Contains(r.Output, "meta.json") {
			t.Errorf("%+v", r)
		}
	}
}

// A result that is too long is put aside, and the model can read it there.
func TestSpillCanBeRead(t *testing.T) {
	p := newPlace(t, m{"big.txt": strings.Repeat("needle 0123456789 0123456789\n", 1500)})
	p.script(call("read", m{"path": "big.txt"}), `{"text": "found"}`)
	res, events := p.run("", "go")
	var spilled string
	for _, e := range events {
		if r, ok := e.Body.(event.ToolResult); ok {
			if _, rest, ok := strings.Cut(r.Output, "full output: "); ok {
				spilled, _, _ = strings.Cut(rest, "]")
			} else {
				t.Fatalf("the result has only %d characters", len(r.Output))
			}
		}
	}
	p.script(call("read", m{"path": spilled, "limit": "1"}), call("write", m{"path": spilled, "content": "x"}), `{"text": "read"}`)
	p.opts.Mode = "workspace-write"
	_, events = p.run(res.Session, "read it")
	for _, e := range events {
		if r, ok := e.Body.(event.ToolResult); ok && (r.Name == "read" && (r.IsError || !strings.Contains(r.Output, "needle")) || r.Name == "write" && !r.IsError) {
			t.Errorf("%+v", r)
		}
	}
}

func TestBadOptions(t *testing.T) {
	p := newPlace(t, m{"file": ""})
	config := func(text string) func(*Options) {
		return func(o *Options) {
			o.ConfigDir = filepath.Join(filepath.Dir(o.Workspace), "config2")
			p.put(filepath.Join(o.ConfigDir, "config.jsonc"), text)
		}
	}
	for _, c := range []struct {
		name string
		set  func(*Options)
		text string
	}{
		{"workspace that does not exist", func(o *Options) { o.Workspace += "/none" }, "does not exist"},
		{"workspace that is a file", func(o *Options) { o.Workspace += "/file" }, "is not a directory"},
		{"mode plan", func(o *Options) { o.Mode = "plan" }, "not supported yet"},
		{"unknown mode", func(o *Options) { o.Mode = "yolo" }, `unknown mode "yolo"`},
		{"negative window", func(o *Options) { o.Ctx = -1 }, "negative"},
		{"B075", config(`{ "model": tiny }`), "line 1, column 12"},
		{"mode in settings", config(`{"mode": "yolo"}`), "yolo"},
		{"bad rule", config("{\"permissions\": [\n  {\"tool\": \"read\", \"action\": \"maybe\"}]}"), "line 2, column 3: unknown action"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := p.opts
			c.set(&o)
			_, err := Open(o)
			if service.CodeOf(err) != service.ExitUsage || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Fatal(err)
			}
		})
	}
}

func TestBadModels(t *testing.T) {
	p := newPlace(t, nil)
	dir := filepath.Dir(p.opts.Workspace)
	p.put(filepath.Join(dir, "bad.jsonl"), "{\"text\": \"ok\"}\n\n{\"txt\": \"typo\"}\n")
	p.put(filepath.Join(dir, "bad.gguf"), "this is no model")
	for name, c := range map[string]struct{ model, text string }{
		"no such script":   {"script:" + dir + "/none", "none"},
		"bad script":       {"script:" + dir + "/bad.jsonl", "line 3"},
		"no such model":    {"no-such-model", "no-such-model"},
		"default missing":  {"", ""},
		"foreign file":     {dir + "/bad.gguf", "bad.gguf"},
		"folder as script": {"script:" + dir, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := p.opts
			o.Model = c.model
			svc, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer svc.Close()
			_, err = svc.Start(context.Background())
			if service.CodeOf(err) != service.ExitModel || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Fatal(err)
			}
			if list, err := svc.List(); err != nil || len(list) != 0 {
				t.Fatal("a session without a model:", list, err)
			}
		})
	}
}

func TestNotices(t *testing.T) {
	p := newPlace(t, m{"AGENTS.md": strings.Repeat("long line\n", 2000), ".atoll/config.jsonc": `{"mode": "workspace-write"}`}).script(
		`{"text": "x", "expect": {"contains": "AGENTS.md is cut here"}}`)
	res, events := p.run("", "hi")
	if res.ExitCode != 0 || res.Mode != "read-only" {
		t.Fatalf("%+v", res)
	}
	var got []string
	for _, e := range events {
		if n, ok := e.Body.(event.Notice); ok {
			got = append(got, n.Text)
		}
	}
	if len(got) != 2 || !strings.Contains(got[0], "AGENTS.md is longer") || !strings.Contains(got[1], "ignored") {
		t.Fatal(got)
	}
}

// Eight runs at once in one workspace.
func TestEightAtOnce(t *testing.T) {
	p := newPlace(t, m{"a.txt": "shared"}).script(call("read", m{"path": "a.txt"}), `{"text": "done", "expect": {"contains": "shared"}}`)
	p.run("", "warm") // skips where there are no tools
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			svc, err := Open(p.opts)
			if err != nil {
				t.Error(err)
				return
			}
			defer svc.Close()
			s, err := svc.Start(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if res := s.Prompt(context.Background(), "go"); res.ExitCode != 0 {
				t.Errorf("%+v", res)
			}
		})
	}
	wg.Wait()
	svc, err := Open(p.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	if list, err := svc.List(); err != nil || len(list) != 9 {
		t.Fatal(len(list), err)
	}
}

func TestDirs(t *testing.T) {
	for _, c := range []struct {
		name string
		env  Env
		want Directories
	}{
		{"defaults", Env{Home: "/h"}, Directories{"/h/.local/share/atoll", "/h/.cache/atoll", "/h/.config/atoll", "/h/.local/share/atoll/models"}},
		{"xdg", Env{Home: "/h", XDGDataHome: "/d", XDGCacheHome: "/c", XDGConfigHome: "/k"}, Directories{"/d/atoll", "/c/atoll", "/k/atoll", "/d/atoll/models"}},
		{"relative xdg is ignored", Env{Home: "/h", XDGDataHome: "d"}, Directories{"/h/.local/share/atoll", "/h/.cache/atoll", "/h/.config/atoll", "/h/.local/share/atoll/models"}},
		{"atoll home", Env{Home: "/h", AtollHome: "/a", AtollModels: "/m"}, Directories{"/a", "/a/cache", "/h/.config/atoll", "/m"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Dirs(c.env)
			if err != nil || got != c.want {
				t.Fatalf("%+v %v", got, err)
			}
		})
	}
	if _, err := Dirs(Env{}); err == nil {
		t.Fatal("no home, no error")
	}
}
