//go:build unix

package prompt

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
)

func TestBuild(t *testing.T) {
	o := Options{OS: "linux", CanWrite: true}
	text := Build(o)
	if text != Build(o) {
		t.Error("the prompt is not stable")
	}
	if !strings.Contains(text, "\nSystem: linux\n") || !strings.Contains(text, "call edit") || strings.Contains(text, "read-only") {
		t.Error(text)
	}
	o.CanWrite = false
	if text := Build(o); strings.Contains(text, "call edit") || !strings.Contains(text, "read-only") {
		t.Error(text)
	}
}

func TestInstructions(t *testing.T) {
	put := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if in, err := LoadInstructions(dir); in != nil || err != nil || in.Notice() != "" {
		t.Fatal(in, err)
	}
	put(dir, "CLAUDE.md", "two")
	put(dir, "AGENTS.md", " \n")
	if in, err := LoadInstructions(dir); err != nil || in.Name != "CLAUDE.md" || in.Text != "two" {
		t.Fatal(in, err)
	}
	put(dir, "AGENTS.md", "\ufeffone \xff")
	in, err := LoadInstructions(dir)
	if err != nil || in.Name != "AGENTS.md" || in.Text != "one \ufffd" || in.Cut {
		t.Fatal(in, err)
	}
	if text := Build(Options{Instructions: in}); !strings.Contains(text, "(AGENTS.md):\none") {
		t.Error(text)
	}
	put(dir, "AGENTS.md", "x"+strings.Repeat("ä", MaxInstructions))
	in, err = LoadInstructions(dir)
	if err != nil || !in.Cut || !utf8.ValidString(in.Text) || len(in.Text) > MaxInstructions || strings.ContainsRune(in.Text, '\ufffd') {
		t.Fatal(len(in.Text), err)
	}
	if in.Notice() == "" || !strings.Contains(Build(Options{Instructions: in}), "AGENTS.md is cut here") {
		t.Error("the cut is not visible")
	}
}

// A file that is none, or that lies elsewhere, is not shown to a model, and does not hold up the start.
func TestHostileInstructions(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"link to outside": func(p string) error { return os.Symlink(outside, p) },
		"folder":          func(p string) error { return os.Mkdir(p, 0o700) },
		"fifo":            func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"loop":            func(p string) error { return os.Symlink("AGENTS.md", p) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := make(filepath.Join(dir, "AGENTS.md")); err != nil {
				t.Fatal(err)
			}
			if in, err := LoadInstructions(dir); err == nil || in != nil {
				t.Fatal(in, err)
			}
		})
	}
}
