package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     Settings
		fault    string
	}{
		{"empty object", `{}`, Settings{}, ""},
		{"B075", "\xef\xbb\xbf{\r\n  // my model\r\n  \"model\": \"tiny\", /* x */\r\n}\r\n", Settings{Model: "tiny"}, ""},
		{"everything", `{"model":"a // no comment","mode":"read-only","ctx":4096,"threads":2,"permissions":[{"tool":"*","path":"x","command":"y","action":"deny"}]}`,
			Settings{Model: "a // no comment", Mode: "read-only", Ctx: 4096, Threads: 2, Permissions: []Rule{{Tool: "*", Path: "x", Command: "y", Action: "deny", Place: "f: line 1, column 85"}}}, ""},
		{"escapes", `{"model":"\u00e9\"\\"}`, Settings{Model: `é"\`}, ""},
		{"B075, second file", `{ "model": tiny }`, Settings{}, "f: line 1, column 12: expected a value, found tiny"},
		{"place after a byte order mark", "\ufeff{\"model\": tiny}", Settings{}, "line 1, column 11"},
		{"columns count characters", `{"model": "äöü", "mode": x}`, Settings{}, "line 1, column 26"},
		{"empty file", ``, Settings{}, "line 1, column 1: expected a value, found the end"},
		{"only a comment", "// x\n", Settings{}, "line 2, column 1"},
		{"unknown key", "{\n  \"modell\": \"x\"}", Settings{}, `line 2, column 3: unknown key "modell"; did you mean "model"?`},
		{"unknown key in a rule", `{"permissions":[{"tols":"x"}]}`, Settings{}, `unknown key "tols"; did you mean "tool"?`},
		{"twice", `{"model":"a","model":"b"}`, Settings{}, `"model" stands here twice`},
		{"wrong type", `{"model": 7}`, Settings{}, "column 11: this must be a string, not a number"},
		{"zero", `{"ctx": 0}`, Settings{}, "0 is not a whole number from 1 on"},
		{"fraction", `{"ctx": 1.5}`, Settings{}, "1.5 is not a whole number"},
		{"no number", `{"ctx": 1-2}`, Settings{}, "1-2 is not a number"},
		{"array", `[]`, Settings{}, "the settings must be an object, not an array"},
		{"rules", `{"permissions": {}}`, Settings{}, "permissions must be an array"},
		{"no colon", `{"model" "x"}`, Settings{}, "column 10: expected : after"},
		{"no comma", `{"model":"x" "mode":"y"}`, Settings{}, "expected , or }"},
		{"open comment", `{ /* x }`, Settings{}, "column 3: comment without end"},
		{"open text", "{\"model\": \"x\n\"}", Settings{}, "column 11: text without closing quote"},
		{"open object", `{"model": "x"`, Settings{}, "column 14: expected , or }"},
		{"more", `{} {}`, Settings{}, "column 4: text after the end"},
		{"single quotes", `{'model': 1}`, Settings{}, "column 2: expected a key in double quotes"},
		{"not UTF-8", "{\"model\": \"\xff\"}", Settings{}, "column 12: not valid UTF-8"},
		{"deep", strings.Repeat("[", 100000), Settings{}, "nested too deeply"},
		{"just commas", `{,}`, Settings{}, "expected a key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse("f", []byte(c.in))
			if c.fault == "" {
				if err != nil || !reflect.DeepEqual(got, c.want) {
					t.Fatalf("%+v %v", got, err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.fault) {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, Settings{}) {
				t.Error("an error with settings")
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if s, err := Load(filepath.Join(dir, "none")); err != nil || !reflect.DeepEqual(s, Settings{}) {
		t.Error(s, err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a folder is no file")
	}
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, make([]byte, MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Error(err)
	}
	if _, err := Load(os.DevNull); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf{\r\n // c\n \"model\": \"tiny\", /* x */ \"permissions\": [{\"tool\": \"*\",},],}"))
	f.Add([]byte(`{"ctx": 1e3, "a": [true, null, "\u12"]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		_, err := Parse("f", in)
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1) {
			t.Fatal(err)
		}
	})
}
