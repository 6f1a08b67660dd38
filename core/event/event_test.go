package event

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/core/message"
)

var bodies = []Body{
	SessionStarted{Session: "s", Workspace: "/w", Mode: "read-only", Model: "m"},
	ModeChanged{Mode: "workspace-write"},
	TurnStarted{Turn: 1},
	MessageStarted{Message: message.NewUser("m1", "<hi>")},
	StepStarted{Message: "m2", Step: 1, Model: "m"},
	TextDelta{Message: "m2", Text: "a < b && c"},
	ReasoningDelta{Message: "m2", Text: "r"},
	ToolInputDelta{Message: "m2", Index: 1, Name: "edit", Delta: "{"},
	Progress{Done: 1, Total: 2},
	ToolCall{Message: "m2", CallID: "c1", Name: "edit", Input: json.RawMessage(`{"a":"<"}`)},
	ToolStarted{CallID: "c1", Title: "t"},
	ToolResult{CallID: "c1", Name: "edit", IsError: true, Output: "o", Title: "t", Diff: "d"},
	PermissionAsked{ID: "p1", CallID: "c1", Tool: "edit", Subject: "x", SessionRule: "{}"},
	PermissionResolved{ID: "p1", CallID: "c1", Tool: "edit", Outcome: "allowed_once", Rule: "{}"},
	StepFinished{Message: "m2", Stop: "end", Usage: message.Usage{Prompt: 1}},
	MessageAborted{Message: "m2", Reason: "error"},
	Notice{Text: "n"},
	ContextOverflow{Prompt: 10, Max: 5},
	TurnFinished{Turn: 1, Stop: StopEnd, Text: "x", Error: "e", Steps: 2},
}

func TestRoundTrip(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	seen := map[string]bool{}
	for i, b := range bodies {
		e := Event{Seq: uint64(i), Time: at, Body: b}
		text, err := Encode(e)
		if err != nil {
			t.Fatalf("%T: %v", b, err)
		}
		if strings.Contains(string(text), `\u003c`) || strings.ContainsRune(string(text), '\n') {
			t.Errorf("%s", text)
		}
		var head struct{ Type string }
		if err := json.Unmarshal(text, &head); err != nil || seen[head.Type] || head.Type == "" {
			t.Errorf("type %q of %T: %v", head.Type, b, err)
		}
		seen[head.Type] = true
		var got Event
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("%+v\n%+v", got, e)
		}
		if _, live := b.(Progress); live != Live(b) {
			if _, ok := b.(ToolInputDelta); !ok {
				t.Errorf("%T: live %v", b, Live(b))
			}
		}
	}
	if _, err := Encode(Event{}); err == nil {
		t.Error("an event without body encodes")
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, in := range []string{`{`, `[]`, `{"type":"notice"}`, `{"time":"yesterday","type":"notice"}`, `{"time":"2026-01-02T03:04:05.000Z","type":"x"}`,
		`{"time":"2026-01-02T03:04:05.000Z","type":"notice","text":1}`} {
		var e Event
		if err := json.Unmarshal([]byte(in), &e); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
}

func FuzzEvent(f *testing.F) {
	for _, b := range bodies {
		text, err := Encode(Event{Seq: 1, Time: time.Unix(0, 0), Body: b})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var e Event
		if json.Unmarshal(in, &e) != nil {
			return
		}
		out, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		var again Event
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	})
}

func TestBusDeliversAllInOrder(t *testing.T) {
	var b Bus
	slow, fast, lossy := b.Subscribe(0), b.Subscribe(1000), b.SubscribeLossy(1)
	var got []uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		for e := range slow.C {
			got = append(got, e.Seq)
		}
	})
	for i := range 500 {
		b.Publish(Event{Seq: uint64(i)})
	}
	b.Close()
	wg.Wait()
	n := 0
	for e := range fast.C {
		if e.Seq != uint64(n) {
			t.Fatal(e.Seq, n)
		}
		n++
	}
	if len(got) != 500 || n != 500 {
		t.Fatal(len(got), n)
	}
	if kept := len(lossy.C); kept != 1 || lossy.Dropped() != 499 {
		t.Fatal(kept, lossy.Dropped())
	}
	b.Publish(Event{}) // nobody is there
}

// A reader that goes away frees a Publish that waits for it.
func TestBusReaderGoesAway(t *testing.T) {
	var b Bus
	s := b.Subscribe(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 10 {
			b.Publish(Event{})
		}
	}()
	<-s.C
	s.Close()
	s.Close()
	<-done
	for range s.C {
	}
}

// Closing, subscribing and publishing at once: for the race detector.
func TestBusHammer(t *testing.T) {
	var b Bus
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				b.Publish(Event{})
			}
		})
		wg.Go(func() {
			for range 50 {
				s := b.Subscribe(1)
				go s.Close()
				for range s.C {
				}
			}
		})
	}
	wg.Wait()
}
