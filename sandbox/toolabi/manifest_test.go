package toolabi

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

const good = `{"name":"count","description":"Counts lines.","parameters":{"type":"object"},
 "capabilities":["dir:read:~/.cache/x","dir:write:/data","env:LANG","exec:git","http:example.org","clock","random"],
 "limits":{"wall_ms":10000,"memory_pages":4096,"output_bytes":1048576,"written_bytes":268435456,"open_files":256,"files":10000,"fuel":0}}`

func TestParseManifest(t *testing.T) {
	m, err := ParseManifest([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "count" || len(m.Capabilities) != 7 || m.Limits.Files != 10000 {
		t.Errorf("%+v", m)
	}
	change := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "EOF"},
		{"unknown key", change(`"name"`, `"nam"`), "unknown field"},
		{"unknown limit", change(`"files"`, `"file"`), "unknown field"},
		{"two values", good + "{}", "after the value"},
		{"no name", change(`count`, ``), "name"},
		{"path as name", change(`count`, `../x`), "name"},
		{"control in name", change(`count`, `a\u001b[31m`), "name"},
		{"no description", change(`Counts lines.`, ``), "description"},
		{"no parameters", change(`"parameters":{"type":"object"},`, ``), "parameters"},
		{"parameters no object", change(`"type":"object"`, `"type":"string"`), "parameters"},
		{"unknown capability", change(`"clock"`, `"clocks"`), "unknown"},
		{"relative directory", change(`/data`, `data`), "absolute"},
		{"no program", change(`exec:git`, `exec:`), "colon"},
		{"negative limit", change(`10000,"memory`, `-1,"memory`), "wall_ms"},
		{"large limit", change(`4096`, `65537`), "memory_pages"},
		{"fraction", change(`4096`, `1.5`), "memory_pages"},
		{"fuel", change(`"fuel":0`, `"fuel":5`), "not available"},
		{"too long", change(`Counts lines.`, strings.Repeat("x", maxManifestBytes)), "more than"},
	} {
		if _, err := ParseManifest([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := ParseManifests([]byte("[" + good + "," + good + "]")); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("twice: %v", err)
	}
}

func custom(name, content string) []byte {
	body := append([]byte{byte(len(name))}, name+content...)
	return append([]byte{0, byte(len(body))}, body...)
}

func TestManifestOf(t *testing.T) {
	head := "\x00asm\x01\x00\x00\x00"
	small := `{"name":"a","description":"b","parameters":{"type":"object"}}`
	for _, c := range []struct {
		name, wasm, want string
	}{
		{"there", head + string(custom("name", "x")) + string(custom(Section, small)), ""},
		{"missing", head + string(custom("name", "x")), ErrNoManifest.Error()},
		{"twice", head + string(custom(Section, small)) + string(custom(Section, small)), "twice"},
		{"not wasm", "hello, world", "not a WebAssembly"},
		{"size lies", head + "\x00\xff\xff\xff\xff\x0f", "longer"},
		{"name lies", head + "\x00\x02\xff\x01", "longer"},
		{"broken", head + string(custom(Section, "{")), "parse manifest"},
	} {
		_, err := ManifestOf([]byte(c.wasm))
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := ManifestOf([]byte(head)); !errors.Is(err, ErrNoManifest) {
		t.Errorf("%v", err)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"name":"a","description":"b","parameters":{"type":"object"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest(data)
		if err != nil {
			return
		}
		out, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseManifest(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		var a, b bytes.Buffer
		json.Compact(&a, m.Parameters)
		json.Compact(&b, again.Parameters)
		m.Parameters, again.Parameters = nil, nil
		if len(m.Capabilities) == 0 {
			m.Capabilities = nil
		}
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v\n%+v", m, again)
		}
	})
}

func FuzzCustomSection(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x05\x04name"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := CustomSection(data, Section)
		if err == nil && len(got) > len(data) {
			t.Fatal("more than there is")
		}
	})
}
