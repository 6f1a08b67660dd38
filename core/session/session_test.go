package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/core/event"
	"atoll/core/message"
	"atoll/core/store"
)

// manualClock moves only when it is told to.
type manualClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer
}

type timer struct {
	at time.Time
	f  func()
}

func newClock() *manualClock { return &manualClock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manualClock) AfterFunc(d time.Duration, f func()) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{c.now.Add(d), f}
	c.timers = append(c.timers, t)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		t.f = nil
	}
}

func (c *manualClock) add(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for _, t := range c.timers {
		if t.f != nil && !t.at.After(c.now) {
			due = append(due, t.f)
			t.f = nil
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

func newHome(t *testing.T) (*Home, *manualClock) {
	c := newClock()
	return NewHome(Options{Dir: t.TempDir(), Clock: c}), c
}

func create(t *testing.T, h *Home, ws string) *Session {
	t.Helper()
	s, err := h.Create(Start{Workspace: ws, Mode: "read-only", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func emit(t *testing.T, s *Session, bodies ...event.Body) {
	t.Helper()
	if err := s.Emit(bodies...); err != nil {
		t.Fatal(err)
	}
}

func user(s *Session, text string) event.Body {
	return event.MessageStarted{Message: message.NewUser(s.NextMessageID(), text)}
}

func assistant(s *Session) (string, event.Body) {
	id := s.NextMessageID()
	return id, event.MessageStarted{Message: message.Message{ID: id, Role: message.Assistant}}
}

func deltas(t *testing.T, h *Home, s *Session) []string {
	t.Helper()
	var out []string
	if err := s.Events(1, func(e event.Event) error {
		switch b := e.Body.(type) {
		case event.TextDelta:
			out = append(out, b.Text)
		case event.ReasoningDelta:
			out = append(out, "("+b.Text+")")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStreamIsGathered(t *testing.T) {
	h, clock := newHome(t)
	s := create(t, h, "/w")
	id, start := assistant(s)
	emit(t, s, event.TurnStarted{Turn: 1}, user(s, "hi"), start)
	say := func(text string) {
		t.Helper()
		if err := s.Stream(event.TextDelta{Message: id, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want ...string) {
		t.Helper()
		if got := deltas(t, h, s); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %q, want %q", when, got, want)
		}
	}
	say("first")
	check("the first piece does not wait", "first")
	clock.add(10 * time.Millisecond)
	say("a")
	clock.add(10 * time.Millisecond)
	say("b")
	check("within 50 ms", "first")
	clock.add(29 * time.Millisecond)
	check("after 49 ms", "first")
	clock.add(time.Millisecond)
	check("the timer writes after 50 ms, with no further piece", "first", "ab")
	say("c")
	if err := s.Stream(event.ReasoningDelta{Message: id, Text: "r"}); err != nil {
		t.Fatal(err)
	}
	check("another part does not join", "first", "ab", "c")
	say("d")
	check("nor the next", "first", "ab", "c", "(r)")
	say(strings.Repeat("x", flushBytes))
	check("2048 bytes do not wait", "first", "ab", "c", "(r)", "d"+strings.Repeat("x", flushBytes))
	say("e")
	emit(t, s, event.StepFinished{Message: id, Stop: "end"})
	check("another event comes after the text", "first", "ab", "c", "(r)", "d"+strings.Repeat("x", flushBytes), "e")
}

func TestPublishedInOrderAfterTheJournal(t *testing.T) {
	h, _ := newHome(t)
	s := create(t, h, "/w")
	sub := s.Subscribe(0)
	var seen []uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range sub.C {
			if e.Seq == 0 {
				continue
			}
			seen = append(seen, e.Seq)
			if next := s.db.Next(); next <= e.Seq {
				t.Errorf("event %d was published before it was in the journal (next %d)", e.Seq, next)
			}
		}
	}()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if err := s.Emit(event.Notice{Text: "x"}, event.Notice{Text: "y"}); err != nil {
					t.Error(err)
				}
				s.Live(event.Progress{Done: 1, Total: 2})
			}
		})
	}
	wg.Wait()
	s.Close()
	<-done
	for i, n := range seen {
		if n != uint64(i+2) {
			t.Fatalf("event %d is number %d", i, n)
		}
	}
	if len(seen) != 160 {
		t.Fatal(len(seen))
	}
}

// A crash at every event of a turn: the session opens, nothing is lost, what was open is closed and marked, and opening again
// changes nothing more.
func TestCrashAtEveryEvent(t *testing.T) {
	bodies := func(s *Session) [][]event.Body {
		id, start := assistant(s)
		id2, start2 := assistant(s)
		return [][]event.Body{
			{event.TurnStarted{Turn: 1}, event.MessageStarted{Message: message.NewUser("m0", "hello\nworld")}},
			{start, event.StepStarted{Message: id, Step: 1}},
			{event.TextDelta{Message: id, Text: "I look."}},
			{event.ToolCall{Message: id, CallID: "c1", Name: "read", Input: json.RawMessage(`{}`)}},
			{event.ToolCall{Message: id, CallID: "c2", Name: "write", Input: json.RawMessage(`{}`)}},
			{event.StepFinished{Message: id, Stop: "end"}},
			{event.ToolStarted{CallID: "c1", Title: "read"}},
			{event.ToolResult{CallID: "c1", Name: "read", Output: "x"}},
			{event.PermissionAsked{ID: "p1", CallID: "c2", Tool: "write"}},
			{event.ToolStarted{CallID: "c2"}},
			{event.ToolResult{CallID: "c2", Name: "write", Output: "y"}},
			{start2, event.StepStarted{Message: id2, Step: 2}},
			{event.ReasoningDelta{Message: id2, Text: "hm"}},
			{event.TextDelta{Message: id2, Text: "Done."}},
			{event.StepFinished{Message: id2, Stop: "end"}},
			{event.TurnFinished{Turn: 1, Stop: event.StopEnd, Text: "Done."}},
		}
	}
	h, _ := newHome(t)
	n := len(bodies(create(t, h, "/other")))
	for cut := 0; cut <= n; cut++ {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			s := create(t, h, "/w")
			for _, b := range bodies(s)[:cut] {
				emit(t, s, b...)
			}
			before := s.db.Next()
			if err := s.db.Close(); err != nil { // the end of the process: nothing else is written
				t.Fatal(err)
			}
			if cut%3 == 0 {
				os.Remove(filepath.Join(s.dir, metaFile))
			}
			s, err := h.Open("/w", s.id)
			if err != nil {
				t.Fatal(err)
			}
			st := s.State()
			if s.db.Next() < before {
				t.Error("events are lost")
			}
			for _, m := range st.Messages {
				finished := false
				for _, p := range m.Parts {
					if tp, ok := p.(message.Tool); ok && !tp.Done() {
						t.Errorf("call %s is open", tp.CallID)
					}
					if _, ok := p.(message.StepFinish); ok {
						finished = true
					}
				}
				if m.Role == message.Assistant && finished == m.Aborted {
					t.Errorf("message %s: finished %v, aborted %v", m.ID, finished, m.Aborted)
				}
			}
			if cut > 0 && cut < n && st.Stop != event.StopInterrupted {
				t.Errorf("stop %q", st.Stop)
			}
			if cut == n && st.Stop != event.StopEnd {
				t.Errorf("stop %q", st.Stop)
			}
			if cut == 10 {
				if out := st.Messages[1].Calls()[1].Output; !strings.Contains(out, "while the call ran") {
					t.Error(out)
				}
			}
			for _, m := range s.ForModel() {
				if m.Aborted {
					t.Error("an aborted message goes to the model")
				}
			}
			repaired := s.db.Next()
			s.Close()
			s, err = h.Open("/w", s.id)
			if err != nil {
				t.Fatal(err)
			}
			if s.db.Next() != repaired {
				t.Error("a repaired session is repaired again")
			}
			s.Close()
			ms, err := h.List("/w")
			if err != nil || len(ms) != cut+1 {
				t.Fatal(len(ms), err)
			}
		})
	}
}

func TestForModelJoinsUsers(t *testing.T) {
	s := State{Messages: []message.Message{
		message.NewUser("m1", "one"),
		{ID: "m2", Role: message.Assistant, Aborted: true, Parts: []message.Part{message.Text{Text: "half"}}},
		message.NewUser("m3", "two"),
		{ID: "m4", Role: message.Assistant, Parts: []message.Part{message.Text{Text: "answer"}}},
	}}
	got := s.ForModel()
	if len(got) != 2 || got[0].Text() != "one\n\ntwo" || got[1].Text() != "answer" {
		t.Fatalf("%+v", got)
	}
	if len(s.Messages[0].Parts) != 1 {
		t.Fatal("the session itself changed")
	}
}

// B057: ids with path parts, and other texts that are no ids.
func TestBadIDs(t *testing.T) {
	h, _ := newHome(t)
	s := create(t, h, "/w")
	s.Close()
	outside := filepath.Join(h.opts.Dir, "keep")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, h.opts.Dir)
	for _, id := range []string{"", ".", "..", "../../evil", "../../../etc", "a/b", `a\b`, "A", "a.b", "-a", "a-", "a b", "a\x00b", "ä", strings.Repeat("a", 65),
		"../" + s.id, Fingerprint("/w") + "/" + s.id} {
		if _, err := h.Open("/w", id); !errors.Is(err, ErrBadID) {
			t.Errorf("open %q: %v", id, err)
		}
		if _, err := h.View("/w", id); !errors.Is(err, ErrBadID) {
			t.Errorf("view %q: %v", id, err)
		}
		if err := h.Delete("/w", id); !errors.Is(err, ErrBadID) {
			t.Errorf("delete %q: %v", id, err)
		}
	}
	for _, id := range []string{"nosuch", "con", s.id + "x"} {
		if _, err := h.Open("/w", id); !errors.Is(err, ErrNotFound) {
			t.Errorf("open %q: %v", id, err)
		}
		if err := h.Delete("/w", id); !errors.Is(err, ErrNotFound) {
			t.Errorf("delete %q: %v", id, err)
		}
	}
	if _, err := h.Open("/elsewhere", s.id); !errors.Is(err, ErrNotFound) {
		t.Errorf("session of another workspace: %v", err)
	}
	if err := h.Delete("/elsewhere", s.id); !errors.Is(err, ErrNotFound) {
		t.Errorf("session of another workspace: %v", err)
	}
	if after := tree(t, h.opts.Dir); after != before {
		t.Errorf("files changed:\n%s\n%s", before, after)
	}
	if _, err := s.Spill("../x", ""); !errors.Is(err, ErrBadID) {
		t.Errorf("spill: %v", err)
	}
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	if err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		b.WriteString(p + "\n")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestListAndDelete(t *testing.T) {
	h, clock := newHome(t)
	var ids []string
	for i := range 3 {
		s := create(t, h, "/w")
		emit(t, s, event.TurnStarted{Turn: 1}, user(s, fmt.Sprintf("\n\tsay \x1b[31m%d", i)), event.TurnFinished{Turn: 1, Stop: event.StopEnd})
		if err := s.SaveMeta(); err != nil {
			t.Fatal(err)
		}
		s.Close()
		ids = append(ids, s.id)
		clock.add(time.Second)
	}
	dir := h.workspaceDir("/w")
	// What a crash and an accident may leave.
	for _, d := range []string{"half-made", "half-made-2/store", ".deleted-x", "Not An Id"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ids[0], metaFile), []byte(`{"id":"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, ids[1], metaFile)); err != nil {
		t.Fatal(err)
	}
	ms, err := h.List("/w")
	if err != nil || len(ms) != 3 {
		t.Fatal(ms, err)
	}
	for i, m := range ms {
		if m.ID != ids[2-i] || m.Title != fmt.Sprintf("say [31m%d", 2-i) || m.Stop != event.StopEnd || m.Turns != 1 || m.Workspace != "/w" {
			t.Errorf("%+v", m)
		}
	}
	if last, err := h.Last("/w"); err != nil || last != ids[2] {
		t.Error(last, err)
	}
	if _, err := h.Last("/none"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	// Damaged: listed with the reason, not opened, can be deleted.
	if err := os.Remove(filepath.Join(dir, ids[2], metaFile)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, ids[2], storeDir, "MANIFEST-*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("garbage garbage garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	ms, err = h.List("/w")
	if err != nil || len(ms) != 3 || ms[0].Damaged == "" {
		t.Fatal(ms, err)
	}
	if _, err := h.Open("/w", ids[2]); !errors.Is(err, store.ErrDamaged) {
		t.Error(err)
	}
	if last, err := h.Last("/w"); err != nil || last != ids[1] {
		t.Error(last, err)
	}
	for _, id := range ids {
		if err := h.Delete("/w", id); err != nil {
			t.Error(err)
		}
	}
	if ms, err := h.ListAll(); err != nil || len(ms) != 0 {
		t.Error(ms, err)
	}
}

func TestOpenElsewhere(t *testing.T) {
	h, _ := newHome(t)
	s := create(t, h, "/w")
	_, err := h.Open("/w", s.id)
	var le *LockedError
	if !errors.As(err, &le) || le.PID != os.Getpid() || !errors.Is(err, store.ErrLocked) {
		t.Fatal(err)
	}
	if err := h.Delete("/w", s.id); !errors.As(err, &le) {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(s.dir, metaFile))
	ms, err := h.List("/w")
	if err != nil || len(ms) != 1 || !ms[0].Open {
		t.Fatal(ms, err)
	}
	emit(t, s, event.Notice{Text: "still works"})
}

// A turn that is cut off is in the list, with its title.
func TestListShowsARunningTurn(t *testing.T) {
	h, _ := newHome(t)
	s := create(t, h, "/w")
	emit(t, s, event.TurnStarted{Turn: 1}, user(s, "hello"))
	ms, err := h.List("/w")
	if err != nil || len(ms) != 1 || ms[0].Title != "hello" || ms[0].Turns != 1 || ms[0].Stop != "" {
		t.Fatal(ms, err)
	}
}

// Eight sessions at once in one workspace, each with its own turn, while a ninth reader lists.
func TestEightAtOnce(t *testing.T) {
	h := NewHome(Options{Dir: t.TempDir()})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := h.Create(Start{Workspace: "/w", Mode: "read-only", Model: "m"})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			id, start := assistant(s)
			if err := s.Emit(event.TurnStarted{Turn: 1}, event.MessageStarted{Message: message.NewUser("m0", fmt.Sprint(i))}, start); err != nil {
				t.Error(err)
			}
			for range 50 {
				if err := s.Stream(event.TextDelta{Message: id, Text: strings.Repeat("x", 100)}); err != nil {
					t.Error(err)
				}
			}
			if err := s.Emit(event.StepFinished{Message: id, Stop: "end"}, event.TurnFinished{Turn: 1, Stop: event.StopEnd}); err != nil {
				t.Error(err)
			}
			if err := s.SaveMeta(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			if _, err := h.List("/w"); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	ms, err := h.List("/w")
	if err != nil || len(ms) != 8 {
		t.Fatal(len(ms), err)
	}
	for _, m := range ms {
		st, err := h.View("/w", m.ID)
		if err != nil || len(st.Messages[1].Text()) != 5000 {
			t.Error(err)
		}
	}
}

// A record that is no event, or that does not follow from those before it, is damage and not a panic.
func TestNonsenseInTheJournal(t *testing.T) {
	started := `{"seq":1,"time":"2026-01-02T03:04:05.000Z","type":"session_started","session":"x","workspace":"/w"}`
	for name, recs := range map[string][]string{
		"no JSON":           {"garbage"},
		"unknown type":      {`{"seq":1,"time":"2026-01-02T03:04:05.000Z","type":"surprise"}`},
		"no start":          {`{"seq":1,"time":"2026-01-02T03:04:05.000Z","type":"turn_started","turn":1}`},
		"two starts":        {started, strings.Replace(started, `"seq":1`, `"seq":2`, 1)},
		"wrong number":      {strings.Replace(started, `"seq":1`, `"seq":7`, 1)},
		"text of nobody":    {started, `{"seq":2,"time":"2026-01-02T03:04:05.000Z","type":"text_delta","message":"m9","text":"x"}`},
		"result of no call": {started, `{"seq":2,"time":"2026-01-02T03:04:05.000Z","type":"tool_result","call_id":"c9"}`},
		"bad part":          {started, `{"seq":2,"time":"2026-01-02T03:04:05.000Z","type":"message_started","message":{"id":"m1","role":"user","parts":[{"type":"nope"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHome(t)
			dir := filepath.Join(h.workspaceDir("/w"), "x")
			db, err := store.Open(filepath.Join(dir, storeDir), store.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range recs {
				if _, err := db.Append([]byte(r)); err != nil {
					t.Fatal(err)
				}
			}
			db.Close()
			if _, err := h.Open("/w", "x"); !errors.Is(err, store.ErrDamaged) {
				t.Fatal(err)
			}
			if ms, err := h.List("/w"); err != nil || len(ms) != 1 || ms[0].Damaged == "" {
				t.Fatal(ms, err)
			}
		})
	}
}

// A clock that jumps back does not reorder a session.
func TestClockJumpsBack(t *testing.T) {
	h, clock := newHome(t)
	s := create(t, h, "/w")
	emit(t, s, user(s, "one"))
	clock.add(-time.Hour)
	id, start := assistant(s)
	emit(t, s, start)
	for _, text := range []string{"two", "three"} {
		if err := s.Stream(event.TextDelta{Message: id, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	clock.add(51 * time.Millisecond)
	if got := strings.Join(deltas(t, h, s), ""); got != "twothree" {
		t.Fatal(got)
	}
	s.Close()
	st, err := h.View("/w", s.id)
	if err != nil || st.Messages[0].Text() != "one" || st.Messages[1].Text() != "twothree" {
		t.Fatal(st, err)
	}
}

func TestTitle(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		" \n\t\n fix  the\tbug \nplease":    "fix the bug",
		"\x1b]0;evil\x07 name":              "]0;evil name",
		"a\u202eb":                          "a b",
		strings.Repeat("ä", 60):             strings.Repeat("ä", 38) + "…",
		"bytes \xff\xfe that are not UTF-8": "bytes that are not UTF-8",
	} {
		if got := titleOf(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestNewIDSorts(t *testing.T) {
	a, err := newID(time.Unix(1, 0), bytes.NewReader(make([]byte, 4)))
	if err != nil || CheckID(a) != nil {
		t.Fatal(a, err)
	}
	b, _ := newID(time.Unix(2, 0), bytes.NewReader(make([]byte, 4)))
	if a >= b {
		t.Fatal(a, b)
	}
	if _, err := newID(time.Unix(1, 0), bytes.NewReader(nil)); err == nil {
		t.Fatal("no randomness, no error")
	}
}

func BenchmarkOpen10000Messages(b *testing.B) {
	h := NewHome(Options{Dir: b.TempDir()})
	s, err := h.Create(Start{Workspace: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	var bodies []event.Body
	for range 5000 {
		q := user(s, "a question")
		id, start := assistant(s)
		bodies = append(bodies, q, start, event.TextDelta{Message: id, Text: strings.Repeat("an answer ", 20)}, event.StepFinished{Message: id, Stop: "end"})
	}
	if err := s.Emit(bodies...); err != nil {
		b.Fatal(err)
	}
	s.Close()
	b.ResetTimer()
	for b.Loop() {
		if _, err := h.View("/w", s.id); err != nil {
			b.Fatal(err)
		}
	}
}
