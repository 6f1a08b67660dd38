package app

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/core/event"
	"atoll/core/message"
)

// What the model is shown before the first prompt: a small workspace whole, a larger one as names, nothing where a rule keeps
// any looking tool from a part of it.
func TestView(t *testing.T) {
	small := map[string]string{"a.go": "package a\n\nvar Fine = 1\n", "secret/key": "s3cret\n", ".hidden": "h1dden\n"}
	large := map[string]string{"a.go": "package a\n", "b.txt": strings.Repeat("words and words\n", contentBytes/16)}
	many := map[string]string{}
	for i := range contentFiles + 1 {
		many[string(rune('a'+i))+".txt"] = "t3xt\n"
	}
	deny := func(tool string) string {
		return `{"permissions": [{"tool": "` + tool + `", "path": "secret/**", "action": "deny"}]}`
	}
	for _, c := range []struct {
		name       string
		files      map[string]string
		config     string
		want, miss []string
	}{
		{"small", small, "", []string{"a.go:\n```\npackage a\n\nvar Fine = 1\n```\n", "secret/key:\n```\ns3cret\n```\n"}, []string{"h1dden"}},
		{"large", large, "", []string{"Files in the workspace:\na.go\nb.txt\n"}, []string{"package a", "words and"}},
		{"many files", many, "", []string{"a.txt\nb.txt\n"}, []string{"t3xt"}},
		{"binary file", map[string]string{"a.go": "package a\n", "b.bin": "\x00\x01"}, "", []string{"a.go\nb.bin\n"}, []string{"package a"}},
		{"reading denied", small, deny("read"), nil, []string{"s3cret", "Fine", "a.go"}},
		{"searching denied", small, deny("grep"), nil, []string{"s3cret", "Fine", "a.go"}},
		{"listing denied", small, deny("ls"), nil, []string{"s3cret", "Fine", "a.go"}},
		{"empty workspace", nil, "", nil, []string{"workspace:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, c.files).script(`{"text": "done"}`)
			if c.config != "" {
				p.put(filepath.Join(p.opts.ConfigDir, "config.jsonc"), c.config)
			}
			_, events := p.run("", "go")
			var shown strings.Builder
			for _, e := range events {
				if s, ok := e.Body.(event.MessageStarted); ok {
					for _, part := range s.Message.Parts {
						if text, ok := part.(message.Text); ok {
							shown.WriteString(text.Text)
						}
					}
				}
			}
			for _, w := range c.want {
				if !strings.Contains(shown.String(), w) {
					t.Errorf("%q is not in %q", w, shown.String())
				}
			}
			for _, w := range c.miss {
				if strings.Contains(shown.String(), w) {
					t.Errorf("%q is in %q", w, shown.String())
				}
			}
		})
	}
}

func TestFind(t *testing.T) {
	p := newPlace(t, map[string]string{"a.go": "func f() {\n", "d/b.go": "x\nfunc f() {\nfunc f() {\n", "c": "func g() {\n"})
	p.opts.ModelsDir = filepath.Join(p.opts.DataDir, "models") // as Open does
	ts := &toolbox{opts: toolOptions(p.opts, p.opts.Workspace)}
	defer ts.close()
	reg, err := ts.registry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{"func f() {": {"a.go", "d/b.go"}, "func [fg]": nil, "func g": {"c"}} {
		if got := view(reg).Find(context.Background(), line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
