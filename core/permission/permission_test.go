package permission

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

func rules(t *testing.T, text string) []Rule {
	t.Helper()
	if text == "" {
		return nil
	}
	var rs []Rule
	if err := json.Unmarshal([]byte(text), &rs); err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
	}
	return rs
}

// Rules as users write them.
const example = `[{"tool": "*", "action": "ask"}, {"tool": "write", "path": "src/**", "action": "allow"},
	{"tool": "bash", "command": "go test *", "action": "allow"}, {"tool": "bash", "command": "git push *", "action": "deny"}]`

func TestEvaluate(t *testing.T) {
	read := func(p string) Request { return Request{Tool: "read", Access: Read, Paths: []string{p}} }
	grep := func(p string) Request {
		return Request{Tool: "grep", Access: Read, Paths: []string{p}, Recursive: true}
	}
	write := func(p ...string) Request { return Request{Tool: "write", Access: Write, Paths: p} }
	bash := func(cmds ...string) Request {
		r := Request{Tool: "bash", Access: Write}
		for _, c := range cmds {
			r.Commands = append(r.Commands, strings.Fields(c))
		}
		return r
	}
	for _, c := range []struct {
		name                   string
		mode                   Mode
		user, project, session string
		req                    Request
		want                   Action
	}{
		{"read-only reads", ReadOnly, "", "", "", read("a"), Allow},
		{"read-only does not write", ReadOnly, "", "", "", write("a"), Deny},
		{"a rule does not widen a mode", ReadOnly, `[{"tool":"*","action":"allow"}]`, `[{"tool":"*","action":"allow"}]`, `[{"tool":"*","action":"allow"}]`, write("a"), Deny},
		{"unknown mode grants nothing", "bypass", "", "", "", read("a"), Deny},
		{"unknown access", WorkspaceWrite, "", "", "", Request{Tool: "x", Access: "exec"}, Deny},
		{"workspace-write writes", WorkspaceWrite, "", "", "", write("a"), Allow},
		{"example: anything asks", WorkspaceWrite, example, "", "", read("a"), Ask},
		{"example: write below src", WorkspaceWrite, example, "", "", write("src/a/b.go"), Allow},
		{"example: write beside src", WorkspaceWrite, example, "", "", write("srcx/a"), Ask},
		{"dots do not lead out of src", WorkspaceWrite, example, "", "", write("src/../a"), Ask},
		{"all paths must be allowed", WorkspaceWrite, example, "", "", write("src/link", "elsewhere/a"), Ask},
		{"example: go test", WorkspaceWrite, example, "", "", bash("go test ./..."), Allow},
		{"example: go vet asks", WorkspaceWrite, example, "", "", bash("go vet"), Ask},
		{"example: git push", WorkspaceWrite, example, "", "", bash("git push origin"), Deny},
		{"every command must be allowed", WorkspaceWrite, example, "", "", bash("go test ./...", "rm -rf x"), Ask},
		{"the strictest command decides", WorkspaceWrite, example, "", "", bash("go test ./...", "git push x"), Deny},
		{"a program is not a prefix", WorkspaceWrite, example, "", "", bash("go testx"), Ask},
		{"last match wins", WorkspaceWrite, `[{"tool":"read","action":"deny"},{"tool":"read","action":"allow"}]`, "", "", read("a"), Allow},
		{"edit covers write", WorkspaceWrite, `[{"tool":"edit","action":"deny"}]`, "", "", write("a"), Deny},
		{"write does not cover edit", WorkspaceWrite, `[{"tool":"write","action":"deny"}]`, "", "", Request{Tool: "edit", Access: Write, Paths: []string{"a"}}, Allow},
		{"project wins over user", WorkspaceWrite, `[{"tool":"read","action":"ask"}]`, `[{"tool":"read","action":"allow"}]`, "", read("a"), Allow},
		{"a deny of the user is final", WorkspaceWrite, `[{"tool":"read","action":"deny"}]`, `[{"tool":"read","action":"allow"}]`, `[{"tool":"read","action":"allow"}]`, read("a"), Deny},
		{"session answers an ask", WorkspaceWrite, `[{"tool":"read","action":"ask"}]`, "", `[{"tool":"read","path":"a","action":"allow"}]`, read("a"), Allow},
		{"session answers no other ask", WorkspaceWrite, `[{"tool":"read","action":"ask"}]`, "", `[{"tool":"read","path":"a","action":"allow"}]`, read("b"), Ask},
		{"session does not lift a deny of the project", WorkspaceWrite, "", `[{"tool":"read","action":"deny"}]`, `[{"tool":"read","action":"allow"}]`, read("a"), Deny},
		{"search above a hidden folder", WorkspaceWrite, `[{"tool":"*","path":"secret/**","action":"deny"}]`, "", "", grep("."), Deny},
		{"search in a hidden folder", WorkspaceWrite, `[{"tool":"*","path":"secret/**","action":"deny"}]`, "", "", grep("secret/x"), Deny},
		{"search beside a hidden folder", WorkspaceWrite, `[{"tool":"*","path":"secret/**","action":"deny"}]`, "", "", grep("src"), Allow},
		{"search where any folder may hide", WorkspaceWrite, `[{"tool":"*","path":"**/*.key","action":"deny"}]`, "", "", grep("src"), Deny},
		{"search with an allow below only", WorkspaceWrite, `[{"tool":"*","action":"ask"},{"tool":"grep","path":"src/**","action":"allow"}]`, "", "", grep("."), Ask},
		{"a path outside matches no rule below", WorkspaceWrite, `[{"tool":"*","action":"ask"},{"tool":"read","path":"**","action":"allow"}]`, "", "", read("../x"), Ask},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Policy{Mode: c.mode, User: rules(t, c.user), Project: rules(t, c.project), Session: rules(t, c.session)}
			if got := p.Evaluate(c.req); got.Action != c.want {
				t.Errorf("%s %+v, want %s", got.Action, got.Rule, c.want)
			}
		})
	}
}

func TestRuleCheck(t *testing.T) {
	for _, r := range []Rule{
		{}, {Tool: "x"}, {Action: Allow}, {Tool: "x", Action: "maybe"}, {Tool: "[", Action: Allow}, {Tool: "x", Path: "[", Action: Allow},
		{Tool: "x", Path: "/etc", Action: Allow}, {Tool: "x", Path: "../y", Action: Allow}, {Tool: "x", Path: "a/../../y", Action: Allow},
		{Tool: "x", Command: "[", Action: Allow}, {Tool: "x", Path: "a", Command: "b", Action: Allow},
	} {
		if r.Check() == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]string{"read-only": "", "workspace-write": "", "plan": "not supported yet", "": "unknown mode", "full-auto": "unknown mode"} {
		_, err := ParseMode(in)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// What "for this session" grants is what was asked for, also where names look like patterns.
func TestSessionRuleIsNarrow(t *testing.T) {
	ask := []Rule{{Tool: "*", Action: Ask}}
	for _, c := range []struct {
		name         string
		asked, other Request
	}{
		{"another path", Request{Tool: "write", Access: Write, Paths: []string{"a*"}}, Request{Tool: "write", Access: Write, Paths: []string{"ab"}}},
		{"another tool", Request{Tool: "write", Access: Write, Paths: []string{"a"}}, Request{Tool: "edit", Access: Write, Paths: []string{"a"}}},
		{"another argument", Request{Tool: "bash", Access: Write, Commands: [][]string{{"rm", "*"}}}, Request{Tool: "bash", Access: Write, Commands: [][]string{{"rm", "x"}}}},
		{"a further command", Request{Tool: "bash", Access: Write, Commands: [][]string{{"ls"}}}, Request{Tool: "bash", Access: Write, Commands: [][]string{{"ls"}, {"rm"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBroker(Policy{Mode: WorkspaceWrite, User: ask}, true)
			decide := func(r Request, reply Reply) (Decision, bool) {
				r.ID = "p"
				asked := false
				d, err := b.Decide(context.Background(), r, func(Rule) error {
					asked = true
					go b.Resolve("p", reply)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return d, asked
			}
			if d, _ := decide(c.asked, ReplySession); d.Outcome != AllowedSession || d.Rule == "" {
				t.Fatal(d)
			}
			if d, asked := decide(c.asked, ReplyReject); asked || d.Outcome != AllowedByRule {
				t.Error("the same is asked again", d)
			}
			if d, asked := decide(c.other, ReplyReject); !asked || d.Allowed() {
				t.Error("more is granted than was asked for", d)
			}
		})
	}
}

func TestHeadlessNeverWaits(t *testing.T) {
	b := NewBroker(Policy{Mode: WorkspaceWrite, User: []Rule{{Tool: "*", Action: Ask}}}, false)
	d, err := b.Decide(context.Background(), Request{ID: "p", Tool: "write", Access: Write}, func(Rule) error {
		t.Error("asked")
		return nil
	})
	if err != nil || d.Outcome != DeniedNobodyToAsk || !d.NeedsUser() || d.Allowed() {
		t.Fatal(d, err)
	}
	if b.Resolve("p", ReplyOnce) {
		t.Fatal("nothing was pending")
	}
}

func TestTexts(t *testing.T) {
	r := Request{Tool: "write", Paths: []string{"a"}}
	for _, o := range []Outcome{DeniedByMode, DeniedByRule, DeniedNobodyToAsk, Rejected, Cancelled} {
		d := Decision{Outcome: o, Rule: "{}"}
		if d.Allowed() || !strings.Contains(d.Text(r, ReadOnly), "write a") {
			t.Errorf("%s: %q", o, d.Text(r, ReadOnly))
		}
	}
	if (Decision{}).Allowed() {
		t.Error("no outcome allows")
	}
}

// Many requests at once, answered by several goroutines: each gets exactly one answer.
func TestBrokerHammer(t *testing.T) {
	b := NewBroker(Policy{Mode: WorkspaceWrite, User: []Rule{{Tool: "*", Action: Ask}}}, true)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			id := string(rune('A' + i))
			d, err := b.Decide(context.Background(), Request{ID: id, Tool: "write", Access: Write}, func(Rule) error {
				for range 3 {
					go b.Resolve(id, ReplyOnce)
				}
				return nil
			})
			if err != nil || d.Outcome != AllowedOnce {
				t.Error(d, err)
			}
		})
	}
	wg.Wait()
}
