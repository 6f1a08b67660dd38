package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"atoll/core/agent"
	"atoll/core/event"
	"atoll/core/llm/script"
	"atoll/core/permission"
	"atoll/core/session"
	"atoll/core/store"
	"atoll/core/store/storetest"
	"atoll/core/tool"
)

// B055: the disk fills up in the middle of a turn, at each of many places. The turn ends with an error that says so and with one
// TurnFinished; with space again the session opens, what was acknowledged is there, and it goes on.
func TestDiskFull(t *testing.T) {
	for _, after := range []int64{1, 2, 3, 5, 8, 13, 21, 34, 55} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			disk := storetest.NewDisk()
			home := session.NewHome(session.Options{Dir: t.TempDir(), FS: disk})
			s, err := home.Create(session.Start{Workspace: "/w", Mode: "workspace-write", Model: "script"})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat(`{"text": "step", "tool_calls": [{"name": "read", "arguments": {"path": "counter"}}]}`+"\n", 30)
			m, err := script.New(strings.NewReader(text), script.Options{})
			if err != nil {
				t.Fatal(err)
			}
			reg, err := tool.NewRegistry(fakes(nil)...)
			if err != nil {
				t.Fatal(err)
			}
			a := agent.New(agent.Options{Session: s, Model: m, Tools: reg, Broker: permission.NewBroker(permission.Policy{Mode: permission.WorkspaceWrite}, false)})
			sub := s.Subscribe(10_000)
			disk.FullAfter.Store(after)
			out := a.Turn(context.Background(), "go")
			if out.Stop != event.StopStorage || !errors.Is(out.Err, store.ErrDiskFull) {
				t.Fatalf("%+v", out)
			}
			if err := s.Close(); !errors.Is(err, store.ErrDiskFull) {
				t.Errorf("close: %v", err)
			}
			var acked uint64
			ends := 0
			for e := range sub.C {
				acked = max(acked, e.Seq)
				if f, ok := e.Body.(event.TurnFinished); ok {
					ends++
					if e.Seq != 0 || f.Stop != event.StopStorage || !strings.Contains(f.Error, "disk full") {
						t.Errorf("%+v", e)
					}
				}
			}
			if ends != 1 {
				t.Errorf("%d ends of the turn", ends)
			}
			disk.Full.Store(false)
			s, err = home.Open("/w", s.ID())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var last uint64
			if err := s.Events(1, func(e event.Event) error { last = e.Seq; return nil }); err != nil {
				t.Fatal(err)
			}
			if last < acked {
				t.Errorf("%d events in the journal, %d were published", last, acked)
			}
			if st := s.State(); acked > 1 && st.Stop != event.StopInterrupted {
				t.Errorf("the cut turn is not marked: %+v", st.Stop)
			}
			m, _ = script.New(strings.NewReader(`{"text": "on"}`), script.Options{})
			a = agent.New(agent.Options{Session: s, Model: m, Tools: reg, Broker: permission.NewBroker(permission.Policy{Mode: permission.WorkspaceWrite}, false)})
			if out := a.Turn(context.Background(), "go on"); out.Stop != event.StopEnd {
				t.Errorf("%+v", out)
			}
		})
	}
}
