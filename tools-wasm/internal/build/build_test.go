package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"atoll/sandbox/toolabi"
)

// promptBytes bounds what the six tools cost in every prompt. Qwen's tokenizer makes a token of about
// four bytes of it; the system prompt with all tools has to stay within 900 tokens.
const promptBytes = 1500

func TestManifests(t *testing.T) {
	a, err := Manifests()
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := Manifests(); !bytes.Equal(a, b) {
		t.Error("not stable")
	}
	list, err := toolabi.ParseManifests(a)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	size := 0
	for _, m := range list {
		names = append(names, m.Name)
		size += len(m.Name) + len(m.Description) + len(m.Parameters)
		if strings.ContainsAny(m.Description, "\n") || len(m.Description) > 120 {
			t.Errorf("%s: the description is not one short line", m.Name)
		}
	}
	if got := strings.Join(names, " "); got != "read write edit ls glob grep" {
		t.Errorf("tools %s", got)
	}
	if size > promptBytes {
		t.Errorf("%d bytes of prompt, more than %d", size, promptBytes)
	}
	t.Logf("%d bytes of prompt", size)
}

// TestModuleImports: these packages double the size of the module and the time to load it.
func TestModuleImports(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "atoll/tools-wasm/coretools")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		switch dep {
		case "fmt", "reflect", "encoding/json", "testing", "log", "text/template", "net/http":
			t.Errorf("the module imports %s", dep)
		}
	}
}

// TestModuleIsReproducible builds twice and compares.
func TestModuleIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two modules")
	}
	var got [2][]byte
	for i := range got {
		dir := t.TempDir()
		if err := build(dir, "atoll/tools-wasm/coretools"); err != nil {
			t.Fatal(err)
		}
		var err error
		if got[i], err = os.ReadFile(filepath.Join(dir, "tools.wasm")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got[0], got[1]) {
		t.Error("two builds differ")
	}
	if len(got[0]) > 5<<20 {
		t.Errorf("the module has %d bytes", len(got[0]))
	}
}
