package sandboxtest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Case is one test of the conformance suite of WASI preview 1.
type Case struct {
	// Name is the language's folder and the test, such as "rust/path_link".
	Name string
	// Wasm is the module's file.
	Wasm string
	// Root is the folder to mount a fresh copy of as "/fs-tests.dir" and the like; empty for none.
	Root string
	Args []string
	Env  []string
	// ExitCode and Stdout are what must come out.
	ExitCode int
	Stdout   string
}

// Cases reads the suite below a folder: tests/LANGUAGE/testsuite/wasm32-wasip1/NAME.wasm, each with an optional
// NAME.json (see its spec/specification.md, the legacy form).
func Cases(suite string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(suite, "tests/*/testsuite/wasm32-wasip1/*.wasm"))
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, file := range files {
		dir, base := filepath.Split(file)
		name := strings.TrimSuffix(base, ".wasm")
		rel, err := filepath.Rel(filepath.Join(suite, "tests"), file)
		if err != nil {
			return nil, err
		}
		language, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		c := Case{Name: language + "/" + name, Wasm: file}
		var spec struct {
			Root     *string           `json:"root"`
			Args     []string          `json:"args"`
			Env      map[string]string `json:"env"`
			ExitCode int               `json:"exit_code"`
			Stdout   string            `json:"stdout"`
			Ops      []json.RawMessage `json:"operations"`
		}
		data, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err == nil {
			err = json.Unmarshal(data, &spec)
		}
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if len(spec.Ops) > 0 {
			return nil, fmt.Errorf("%s: operations are not supported", c.Name)
		}
		if spec.Root != nil {
			c.Root = filepath.Join(dir, *spec.Root)
		}
		for k, v := range spec.Env {
			c.Env = append(c.Env, k+"="+v)
		}
		c.Args, c.ExitCode, c.Stdout = spec.Args, spec.ExitCode, spec.Stdout
		cases = append(cases, c)
	}
	return cases, nil
}

// Skips reads a list of test names, one a line, each followed by the reason; "#" starts a comment.
func Skips(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	skips := make(map[string]string)
	for n, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("%s:%d: no reason", file, n+1)
		}
		skips[name] = reason
	}
	return skips, nil
}

// CopyDir copies a tree of regular files and folders.
func CopyDir(to, from string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o777)
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o666)
	})
}
