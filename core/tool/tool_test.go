package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"atoll/core/permission"
)

type stub struct{ spec Spec }

func (s stub) Spec() Spec                                { return s.spec }
func (s stub) Request(Call) (permission.Request, error)  { return permission.Request{}, nil }
func (s stub) Run(context.Context, Call) (Result, error) { return Result{}, nil }
func tl(name, schema string, access permission.Access) Tool {
	return stub{Spec{Name: name, Parameters: json.RawMessage(schema), Access: access}}
}

const schemaText = `{"type":"object","properties":{
	"path":{"type":"string"},"limit":{"type":"integer"},"ratio":{"type":"number"},"all":{"type":"boolean"},
	"items":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"status":{"type":"string","enum":["open","done"]}},"required":["text"]}},
	"any":{},"extra":{"type":"object","additionalProperties":true},"nothing":{"type":"null"}},"required":["path"]}`

func TestCheckInput(t *testing.T) {
	r, err := NewRegistry(tl("t", schemaText, permission.Read))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, in, want, fault string }{
		{"plain", `{"path":"a","limit":3}`, `{"path":"a","limit":3}`, ""},
		{"order and bytes stay", `{"limit": 3, "path": "<&\u00e9>"}`, `{"limit":3,"path":"<&\u00e9>"}`, ""},
		{"number in quotes", `{"path":"a","limit":"12","ratio":" 0.5 "}`, `{"path":"a","limit":12,"ratio":0.5}`, ""},
		{"whole number with a point", `{"path":"a","limit":12.0}`, `{"path":"a","limit":12}`, ""},
		{"boolean in quotes", `{"path":"a","all":"true"}`, `{"path":"a","all":true}`, ""},
		{"null for an optional", `{"path":"a","limit":null,"all":null}`, `{"path":"a"}`, ""},
		{"null where it belongs", `{"path":"a","nothing":null}`, `{"path":"a","nothing":null}`, ""},
		{"nested", `{"path":"a","items":[{"text":"x","status":"done"}]}`, `{"path":"a","items":[{"text":"x","status":"done"}]}`, ""},
		{"anything", `{"path":"a","any":[1,{"b":null}],"extra":{"k":1}}`, `{"path":"a","any":[1,{"b":null}],"extra":{"k":1}}`, ""},
		{"nothing at all", ``, "", `"path" is missing`},
		{"null", `null`, "", `"path" is missing`},
		{"required is null", `{"path":null}`, "", `"path" must be a string, not null`},
		{"unknown", `{"path":"a","file":"b"}`, "", `unknown argument "file"`},
		{"twice", `{"path":"a","path":"b"}`, "", `"path" is given twice`},
		{"wrong type", `{"path":["a"]}`, "", `"path" must be a string, not array`},
		{"not whole", `{"path":"a","limit":1.5}`, "", `"limit" must be a whole number`},
		{"no number in quotes", `{"path":"a","limit":"ten"}`, "", `"limit" must be a number, not string`},
		{"huge number", `{"path":"a","limit":1e999}`, "", `out of range`},
		{"number for a boolean", `{"path":"a","all":1}`, "", `"all" must be true or false, not number`},
		{"enum", `{"path":"a","items":[{"text":"x","status":"lost"}]}`, "", `"items[0].status" must be one of ["open","done"]`},
		{"nested missing", `{"path":"a","items":[{}]}`, "", `"items[0].text" is missing`},
		{"array", `["a"]`, "", `not a JSON object`},
		{"cut", `{"path":"a`, "", `ends too early`},
		{"more text", `{"path":"a"} {}`, "", `text after`},
		{"deep", `{"path":"a","any":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "", `JSON`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := r.CheckInput("t", json.RawMessage(c.in))
			if c.fault == "" {
				if err != nil || string(got) != c.want {
					t.Fatalf("%s %v", got, err)
				}
				return
			}
			var ie *InputError
			if !errors.As(err, &ie) || !strings.Contains(err.Error(), c.fault) || !strings.Contains(err.Error(), "t takes path (string), limit? (integer)") {
				t.Fatal(err)
			}
		})
	}
}

func TestRegistry(t *testing.T) {
	r, err := NewRegistry(tl("read", `{"type":"object"}`, permission.Read), tl("write", `{"type":"object"}`, permission.Write), tl("odd", ``, ""))
	if err != nil {
		t.Fatal(err)
	}
	names := func(m permission.Mode) string {
		out := ""
		for _, s := range r.Specs(m) {
			out += s.Name + " "
		}
		return out
	}
	if names(permission.ReadOnly) != "read " || names(permission.WorkspaceWrite) != "read write " {
		t.Error(names(permission.ReadOnly), names(permission.WorkspaceWrite))
	}
	if _, err := r.Get("rm", permission.ReadOnly); err == nil || err.Error() != `unknown tool "rm"; the tools are read` {
		t.Error(err)
	}
	if _, err := r.Get("write", permission.ReadOnly); err != nil {
		t.Error("a tool that the mode does not offer is still known: the call is denied and not unknown:", err)
	}
	for _, bad := range []string{`{`, `[]`, `{"type":"string"}`, `{"type":"object","properties":{"a":{"type":"text"}}}`, `{"type":"object","properties":{"a":null}}`,
		`{"type":"object","properties":{"a":{}},"required":["b"]}`} {
		if _, err := NewRegistry(tl("x", bad, permission.Read)); err == nil {
			t.Errorf("schema %s is accepted", bad)
		}
	}
	if _, err := NewRegistry(tl("x", "", ""), tl("x", "", "")); err == nil {
		t.Error("the same name twice")
	}
}

func TestTruncate(t *testing.T) {
	keep := func(string) (string, error) { return "/spill/c1.txt", nil }
	exact := strings.Repeat("ä", MaxOutput)
	if got := Truncate(exact, nil); got != exact {
		t.Error("exactly the limit is cut")
	}
	long := strings.Repeat("a", MaxOutput/2) + "MIDDLE" + strings.Repeat("ü", MaxOutput/2)
	got := Truncate(long, keep)
	if strings.Contains(got, "MIDDLE") || !strings.HasPrefix(got, strings.Repeat("a", MaxOutput/2)+"\n... [6 characters left out; full output: /spill/c1.txt] ...\n") ||
		!strings.HasSuffix(got, strings.Repeat("ü", MaxOutput/2)) {
		t.Errorf("%q", got[MaxOutput/2-10:MaxOutput/2+100])
	}
	if got := Truncate(long, func(string) (string, error) { return "", errors.New("full") }); !strings.Contains(got, "the rest was not kept") || len(got) > len(long)+100 {
		t.Error("a spill that fails must not give the whole text")
	}
}

func FuzzCheckInput(f *testing.F) {
	r, err := NewRegistry(tl("t", schemaText, permission.Read))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"path":"a","limit":"3","items":[{"text":"x"}]}`))
	f.Add([]byte(`{"path":null,"any":{"a":[]}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := r.CheckInput("t", in)
		if err != nil {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q", out)
		}
		again, err := r.CheckInput("t", out)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%q %q %v", out, again, err)
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(schemaText))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := parseSchema(in)
		if err == nil {
			_ = s.usage()
			_, _ = s.check([]byte(`{"path":1}`))
		}
	})
}
