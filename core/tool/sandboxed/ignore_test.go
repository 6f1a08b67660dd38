package sandboxed

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/core/permission"
	"atoll/core/tool"
)

func TestOuterIgnore(t *testing.T) {
	top := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("a/b/keep", "")
	if got := outerIgnore(filepath.Join(top, "a/b")); got != "" {
		t.Errorf("outside a repository: %q", got)
	}
	put(".git/info/exclude", "x\x01\x00y\n")
	put(".gitignore", "**/bar/*\n")
	put("a/.gitignore", "!z\n")
	put("a/b/.gitignore", "own\n")
	if err := os.Symlink("keep", filepath.Join(top, "a/b/link")); err != nil {
		t.Fatal(err)
	}
	want := "\x01" + top + "\nxy\n\x01" + top + "\n**/bar/*\n\x01" + filepath.Join(top, "a") + "\n!z\n"
	if got := outerIgnore(filepath.Join(top, "a/b")); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := outerIgnore(top); got != "" {
		t.Errorf("at the top: %q", got)
	}
	if got := readRules(filepath.Join(top, "a/b/link")); got != "" {
		t.Errorf("through a link: %q", got)
	}
	put("a/b/.git/HEAD", "")
	if got := outerIgnore(filepath.Join(top, "a/b")); got != "" {
		t.Errorf("a repository of its own: %q", got)
	}
}

// B047: a rule of the repository holds, too, where only a folder of it is the workspace.
func TestB047Below(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{".git/HEAD": "", ".gitignore": "**/bar/*\n", "foo/bar/baz": "quux\n", "foo/keep": "quux\n"} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	grep := get(t, tools(t, filepath.Join(top, "foo")), "grep")
	res, err := grep.Run(context.Background(), tool.Call{ID: "1", Mode: permission.ReadOnly, Input: json.RawMessage(`{"pattern":"quux"}`)})
	if err != nil || res.IsError || strings.TrimSpace(res.Output) != "keep:1:quux" {
		t.Errorf("%+v, %v", res, err)
	}
}
