package guest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

var probe = &Tool{
	Name: "probe",
	Params: []Param{
		{Name: "path", Kind: String, Required: true},
		{Name: "limit", Kind: Int, Min: 1, Max: 100},
		{Name: "all", Kind: Bool, Doc: "every \"one\""},
	},
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{ // want: an error text, or the decoded values
		{"all given", `{"path":"a","limit":3,"all":true}`, "a 3 true"},
		{"required only", ` { "path" : "a" } `, "a -1 false"},
		{"null is absent", `{"path":"a","limit":null,"all":null}`, "a -1 false"},
		{"whole float", `{"path":"a","limit":3.0}`, "a 3 false"},
		{"exponent", `{"path":"a","limit":1e1}`, "a 10 false"},
		{"escapes", `{"path":"\u00e9\ud83d\ude00\n\t\"\\\/"}`, "é😀\n\t\"\\/ -1 false"},
		{"required null", `{"path":null}`, `argument "path": expected a string, not null`},
		{"missing", `{}`, `argument "path": missing, expected a string`},
		{"number for string", `{"path":3}`, `argument "path": expected a string, not a number`},
		{"array for string", `{"path":["a"]}`, `argument "path": expected a string, not an array`},
		{"object for string", `{"path":{"a":1}}`, `argument "path": expected a string, not an object`},
		{"string for int", `{"path":"a","limit":"3"}`, `argument "limit": expected an integer, not a string`},
		{"fraction", `{"path":"a","limit":3.5}`, `argument "limit": expected an integer, not 3.5`},
		{"too big", `{"path":"a","limit":1e300}`, `argument "limit": expected an integer, not 1e300`},
		{"out of range", `{"path":"a","limit":0}`, `argument "limit": expected an integer from 1 to 100`},
		{"string for bool", `{"path":"a","all":"true"}`, `argument "all": expected true or false, not a string`},
		{"unknown", `{"file":"a"}`, `argument "file": unknown; arguments are path, limit, all`},
		{"twice", `{"path":"a","path":"b"}`, `argument "path": given twice`},
		{"empty input", ``, `arguments: invalid JSON: expected a JSON object at the end of the input`},
		{"not an object", `["path"]`, `arguments: invalid JSON: expected a JSON object at byte 0`},
		{"cut", `{"path":"a`, `argument "path": invalid JSON: expected the end of a string at the end of the input`},
		{"trailing text", `{"path":"a"} x`, `arguments: invalid JSON: unexpected text after the object at byte 13`},
		{"trailing comma", `{"path":"a",}`, `arguments: invalid JSON: expected a string at byte 12`},
		{"raw newline", "{\"path\":\"a\nb\"}", `argument "path": invalid JSON: expected the end of a string at byte 10`},
		{"half a pair", `{"path":"\ud83d"}`, `argument "path": invalid JSON: half a surrogate pair in a string at byte 15`},
		{"not UTF-8", "{\"path\":\"\xff\"}", `argument "path": invalid JSON: a string is not UTF-8 at byte 10`},
		{"control in a key", "{\"a\\u001b[2J\":1}", `argument "a\x1b[2J": unknown; arguments are path, limit, all`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := probe.Decode([]byte(c.in))
			got := ""
			if err != nil {
				got = err.Error()
				var ae *ArgError
				if !errors.As(err, &ae) {
					t.Errorf("%T is not an ArgError", err)
				}
			} else {
				got = a.String("path") + " " + string(mustJSON(t, a.Int("limit", -1))) + " " + string(mustJSON(t, a.Bool("all")))
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func mustJSON(t *testing.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSchema(t *testing.T) {
	want := `{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},"all":{"type":"boolean","description":"every \"one\""}},"required":["path"]}`
	if got := probe.Schema(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzObject holds the parser against encoding/json: it accepts the same flat objects with the same
// values, except where it is stricter by design.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"b"}`, `{"a":1.5e-3,"b":true,"c":null}`, `{"a":"\u00e9\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":[1]}`, `{"a":-0}`, `{"a":01}`, "{\"a\":\"\xff\"}", `{"a":1,}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := parseObject(in)
		var want map[string]any
		dec := json.NewDecoder(strings.NewReader(string(in)))
		dec.UseNumber()
		if !json.Valid(in) || dec.Decode(&want) != nil || want == nil {
			// An array or object ends the parse early, so an error after it goes unseen here.
			if err == nil && (len(got) == 0 || got[len(got)-1].kind < kindArray) {
				t.Fatalf("accepted %q, which is not a JSON object", in)
			}
			return
		}
		if err != nil {
			if utf8.Valid(in) && !strings.Contains(string(in), `\u`) {
				t.Fatalf("refused %q: %v", in, err)
			}
			return
		}
		for i, m := range got {
			later := false
			for _, n := range got[i+1:] {
				later = later || n.key == m.key
			}
			if later || got[len(got)-1].kind >= kindArray {
				continue // encoding/json keeps the last one
			}
			same := false
			switch v := want[m.key].(type) {
			case string:
				same = m.kind == kindString && m.text == v
			case json.Number:
				same = m.kind == kindNumber && m.text == v.String()
			case bool:
				same = m.kind == kindBool && (m.text == "true") == v
			case nil:
				same = m.kind == kindNull
			}
			if !same {
				t.Fatalf("%q: member %q is %q, encoding/json says %v", in, m.key, m.text, want[m.key])
			}
		}
	})
}
