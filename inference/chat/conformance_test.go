package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

// sharedDir is the folder of conformance vectors beside the repository. A clone
// without it skips, CI must have it.
func sharedDir(t testing.TB, elem ...string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the package")
		}
		dir = up
	}
	p := filepath.Join(append([]string{dir, "..", "shared", "conformance"}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("conformance vectors missing: %v", err)
		}
		t.Skipf("conformance vectors are not beside this clone: %v", err)
	}
	return p
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lines gives every line of a JSON lines file with its number.
func jsonLines(t testing.TB, path string, f func(n int, line []byte)) {
	t.Helper()
	s := bufio.NewScanner(bytes.NewReader(readFile(t, path)))
	s.Buffer(nil, 1<<24)
	for n := 1; s.Scan(); n++ {
		if len(bytes.TrimSpace(s.Bytes())) > 0 {
			f(n, s.Bytes())
		}
	}
}

// mustMap reads a JSON object as template variables.
func mustMap(t testing.TB, data []byte) *Map {
	t.Helper()
	v, err := FromJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := v.(*Map)
	if !ok {
		t.Fatalf("got %s, want an object", v.pyType())
	}
	return m
}

var vectorNow = ExecOptions{Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

// expectation is what the vectors say about one rendering.
type expectation struct {
	Text    *string `json:"text"`
	Mutable *string `json:"text_if_mutable"`
	Error   string  `json:"error"`
	Kind    string  `json:"kind"`
}

// check compares a rendering with what is expected; "" if it is right.
func (e expectation) check(got string, err error) string {
	switch {
	case e.Text != nil:
		if err != nil {
			return "error: " + err.Error()
		}
		return diff(got, *e.Text)
	case e.Mutable != nil && err == nil:
		return diff(got, *e.Mutable)
	case e.Kind == "raised":
		var te *Error
		if !errors.As(err, &te) || !te.Raised || te.Msg != e.Error {
			return fmt.Sprintf("got %v, want it to raise %q", err, e.Error)
		}
	case e.Kind == "syntax":
		if err == nil {
			return fmt.Sprintf("got %q, want an error like %q", got, e.Error)
		}
	}
	return ""
}

// diff describes the first difference of two texts.
func diff(got, want string) string {
	if got == want {
		return ""
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, i-40):min(len(s), i+60)] }
	return fmt.Sprintf("differs at byte %d:\n got %q\nwant %q", i, cut(got), cut(want))
}

func TestTemplateVectors(t *testing.T) {
	dir := sharedDir(t, "templates")
	var contexts map[string]json.RawMessage
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, "contexts.json")), &contexts); err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(dir, "*", "template.jinja"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	total, failed := 0, 0
	for _, path := range folders {
		name := filepath.Base(filepath.Dir(path))
		var want map[string]expectation
		if err := json.Unmarshal(readFile(t, filepath.Join(filepath.Dir(path), "expected.json")), &want); err != nil {
			t.Fatal(err)
		}
		tmpl, err := Parse(string(readFile(t, path)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			failed += len(want)
			total += len(want)
			continue
		}
		var cases []string
		for c := range want {
			cases = append(cases, c)
		}
		sort.Strings(cases)
		for _, c := range cases {
			total++
			got, err := tmpl.Execute(mustMap(t, contexts[c]), vectorNow)
			if msg := want[c].check(got, err); msg != "" {
				failed++
				t.Errorf("%s: %s: %s", name, c, msg)
			}
		}
	}
	t.Logf("%d of %d cases of %d templates", total-failed, total, len(folders))
}

func TestSnippetVectors(t *testing.T) {
	dir := sharedDir(t, "templates")
	vars := mustMap(t, readFile(t, filepath.Join(dir, "snippets-context.json")))
	total, failed := 0, 0
	jsonLines(t, filepath.Join(dir, "snippets.jsonl"), func(n int, line []byte) {
		var c struct {
			Template string `json:"template"`
			expectation
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		total++
		tmpl, err := Parse(c.Template)
		got := ""
		if err == nil {
			got, err = tmpl.Execute(vars, vectorNow)
		}
		if msg := c.check(got, err); msg != "" {
			failed++
			t.Errorf("line %d: %s: %s", n, strings.TrimSpace(c.Template), msg)
		}
	})
	t.Logf("%d of %d snippets", total-failed, total)
}

// vectorTemplates are the templates of the vectors by name.
func vectorTemplates(t testing.TB) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(sharedDir(t, "templates"), "*", "template.jinja"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	out := map[string]string{}
	for _, p := range paths {
		out[filepath.Base(filepath.Dir(p))] = string(readFile(t, p))
	}
	return out
}
