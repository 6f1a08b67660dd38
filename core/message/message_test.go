package message

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var every = Message{ID: "m1", Role: Assistant, Aborted: true, Parts: []Part{
	Text{Text: "a <b> & \u2028 \"c\"\n"},
	Text{Text: "list", Synthetic: true},
	Reasoning{Text: "hm"},
	Tool{CallID: "c1", Name: "edit", Input: json.RawMessage(`{"old":"<a>","new":"&"}`), State: ToolCompleted, Output: "ok", Title: "edit x", Diff: "-a\n+b\n"},
	Tool{CallID: "c2", Name: "edit", Input: json.RawMessage(`{}`), Raw: "{broken", State: ToolFailed, Output: "no"},
	StepStart{Model: "m"},
	StepFinish{Stop: "end", Usage: Usage{Prompt: 1, Cached: 2, Output: 3, PrefillMS: 4, DecodeMS: 5}},
	Compaction{Summary: "s"},
	Image{MIME: "image/png", Data: []byte{0, 255}},
}}

func TestRoundTrip(t *testing.T) {
	b, err := every.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `{"old":"<a>","new":"&"}`) {
		t.Errorf("arguments do not keep their bytes: %s", b)
	}
	var got Message
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, every) {
		t.Fatalf("%+v\n%+v", got, every)
	}
	if got.Text() != "a <b> & \u2028 \"c\"\n" || len(got.Calls()) != 2 {
		t.Fatal(got.Text(), got.Calls())
	}
}

func TestDecodeErrors(t *testing.T) {
	for name, in := range map[string]string{
		"no JSON":            `{`,
		"unknown role":       `{"id":"a","role":"system","parts":[]}`,
		"unknown part":       `{"id":"a","role":"user","parts":[{"type":"video"}]}`,
		"part without type":  `{"id":"a","role":"user","parts":[{}]}`,
		"unknown tool state": `{"id":"a","role":"assistant","parts":[{"type":"tool","state":"lost"}]}`,
		"wrong type":         `{"id":"a","role":"user","parts":[{"type":"text","text":1}]}`,
		"part is null":       `{"id":"a","role":"user","parts":[null]}`,
	} {
		var m Message
		if err := json.Unmarshal([]byte(in), &m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := MarshalPart(nil); err == nil {
		t.Error("a part that is nil encodes")
	}
}

func TestUsageAdd(t *testing.T) {
	u := Usage{1, 2, 3, 4, 5}
	if got := u.Add(u); got != (Usage{2, 4, 6, 8, 10}) {
		t.Fatal(got)
	}
}

func FuzzMessage(f *testing.F) {
	b, err := every.MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"id":"a","role":"user","parts":[{"type":"text","text":"x"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var m Message
		if json.Unmarshal(in, &m) != nil {
			return
		}
		out, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again Message
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		twice, err := again.MarshalJSON()
		if err != nil || string(twice) != string(out) {
			t.Fatalf("%s\n%s\n%v", out, twice, err)
		}
	})
}
