package chat

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// callVector is one case of the tool call vectors.
type callVector struct {
	Family string
	Raw    string
	Tools  []struct{ Function Tool }
	Want   struct {
		Content   string
		Reasoning string
		Calls     []vectorCall
		Error     string
		Name      string
		MayRepair []vectorCall `json:"may_repair"`
	}
	Note string
}

type vectorCall struct {
	Name      string
	Arguments any
}

func (v *callVector) tools() []Tool {
	var out []Tool
	for _, t := range v.Tools {
		out = append(out, t.Function)
	}
	return out
}

var manyNewlines = regexp.MustCompile(`\n{2,}`)

func layout(s string) string { return manyNewlines.ReplaceAllString(strings.TrimSpace(s), "\n\n") }

func callsOf(t testing.TB, events []Event) []vectorCall {
	t.Helper()
	var out []vectorCall
	for _, e := range events {
		if e.Kind != EventToolCall {
			continue
		}
		c := vectorCall{Name: e.Name}
		if err := json.Unmarshal(e.Arguments, &c.Arguments); err != nil {
			t.Errorf("arguments of %s are no JSON: %v: %s", e.Name, err, e.Arguments)
		}
		out = append(out, c)
	}
	return out
}

// check compares an answer with the vector; "" if it is right.
func (v *callVector) check(t testing.TB, a Answer) string {
	t.Helper()
	calls := callsOf(t, a.Calls)
	if v.Want.Error != "" {
		if len(v.Want.MayRepair) > 0 && reflect.DeepEqual(calls, v.Want.MayRepair) {
			return ""
		}
		for _, e := range a.Calls {
			if e.Kind == EventToolError && string(e.Reason) == v.Want.Error && (v.Want.Name == "" || e.Name == v.Want.Name) && len(calls) == 0 {
				return ""
			}
		}
		return fmt.Sprintf("got %+v, want error %s %s", a, v.Want.Error, v.Want.Name)
	}
	if len(calls) != len(a.Calls) {
		return fmt.Sprintf("got errors: %+v", a.Calls)
	}
	if len(calls)+len(v.Want.Calls) > 0 && !reflect.DeepEqual(calls, v.Want.Calls) {
		return fmt.Sprintf("calls: got %v, want %v", calls, v.Want.Calls)
	}
	if got, want := layout(a.Content), layout(v.Want.Content); got != want {
		return fmt.Sprintf("content: got %q, want %q", got, want)
	}
	if got, want := layout(a.Reasoning), layout(v.Want.Reasoning); got != want {
		return fmt.Sprintf("reasoning: got %q, want %q", got, want)
	}
	return ""
}

func TestToolCallVectors(t *testing.T) {
	path := filepath.Join(sharedDir(t, "toolcalls"), "cases.jsonl")
	total, failed, skipped := map[string]int{}, map[string]int{}, map[string]int{}
	jsonLines(t, path, func(n int, line []byte) {
		var v callVector
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		if !builtFamily(v.Family) {
			skipped[v.Family]++
			return
		}
		total[v.Family]++
		a, err := ParseWhole(v.Family, v.Raw, v.tools())
		if err != nil {
			t.Fatal(err)
		}
		msg := v.check(t, a)
		if msg == "" {
			msg = splitsAgree(v.Raw, v.tools(), true)
		}
		if msg != "" {
			failed[v.Family]++
			t.Errorf("line %d: %s: %s\nraw %q", n, v.Note, msg, v.Raw)
		}
	})
	for f, n := range total {
		t.Logf("%s: %d of %d", f, n-failed[f], n)
	}
	t.Logf("families without a parser: %v", skipped)
}

// merged joins deltas that follow one another, so that two streams can be compared.
func merged(events []Event) []Event {
	var out []Event
	for _, e := range events {
		if n := len(out); n > 0 && out[n-1].Kind == e.Kind && out[n-1].Index == e.Index && (e.Kind <= EventReasoning || e.Kind == EventToolDelta) {
			out[n-1].Text += e.Text
			continue
		}
		out = append(out, e)
	}
	return out
}

func stream(tools []Tool, think bool, pieces ...string) []Event {
	p := newParser(tools, think)
	var out []Event
	for _, s := range pieces {
		out = append(out, p.Push(s)...)
	}
	return merged(append(out, p.Close()...))
}

// splitsAgree checks that the events do not depend on how the text is cut: in two at
// every byte, and into single bytes.
func splitsAgree(raw string, tools []Tool, think bool) string {
	want := stream(tools, think, raw)
	for i := range len(raw) + 1 {
		if got := stream(tools, think, raw[:i], raw[i:]); !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("cut at byte %d: got %+v, want %+v", i, got, want)
		}
	}
	if got := stream(tools, think, strings.Split(raw, "")...); !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("cut into characters: got %+v, want %+v", got, want)
	}
	return ""
}
