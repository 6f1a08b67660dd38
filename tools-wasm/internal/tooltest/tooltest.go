// Package tooltest runs tools natively in tests, on directories made from a table.
package tooltest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/tools-wasm/internal/guest"
)

// Dir makes a temporary directory from pairs of path and content. A path that ends with a slash is a
// directory; content that starts with "-> " makes a symbolic link.
func Dir(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		var err error
		if target, ok := strings.CutPrefix(files[i+1], "-> "); ok {
			os.MkdirAll(filepath.Dir(name), 0o755)
			err = os.Symlink(target, name)
		} else if strings.HasSuffix(files[i], "/") {
			err = os.MkdirAll(name, 0o755)
		} else {
			os.MkdirAll(filepath.Dir(name), 0o755)
			err = os.WriteFile(name, []byte(files[i+1]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Call runs a tool with JSON arguments in dir and returns its result, or "error: " and the message. The
// name of the directory is replaced by W.
func Call(t testing.TB, tool *guest.Tool, dir, args string) string {
	t.Helper()
	out, err := tool.Call(guest.Env{Dir: dir}, []byte(args))
	if err != nil {
		out = "error: " + err.Error()
	}
	return strings.ReplaceAll(out, dir, "W")
}
