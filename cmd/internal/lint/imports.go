// Package lint holds the repository's rules as data and the checks that compare
// them with the real files. Its tests are the lint: `go test ./cmd/internal/lint`.
package lint

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the import path that all packages of the repository begin with.
const Module = "atoll"

// Rule says what one package, or with a trailing "/..." a whole folder, may
// import from the repository. Paths are below the module; a package of a folder
// rule may also import its own folder.
type Rule struct {
	Package string
	Allow   []string
}

// Imports is the table of allowed imports. To add an edge, edit it: an arrow
// between packages is a decision, and this is where it is reviewed. A package
// without a rule is an error. The first rule that fits counts.
var Imports = []Rule{
	// Arithmetic: knows nothing of models or agents.
	{"kernels", []string{"kernels/quant"}},
	{"kernels/quant", nil},
	{"kernels/ref", []string{"kernels", "kernels/quant"}},
	{"kernels/cpu", []string{"kernels", "kernels/quant"}},
	{"kernels/cpu/asmgen", nil}, // writes the assembly; not part of the program
	{"kernels/auto", []string{"kernels", "kernels/ref", "kernels/cpu"}},
	{"kernels/kerneltest", []string{"kernels", "kernels/quant", "kernels/ref"}},

	// From a model file to tokens: knows nothing of tools.
	{"inference/gguf", []string{"kernels/quant"}},
	{"inference/tokenizer", []string{"inference/gguf"}},
	{"inference/chat", nil},
	{"inference/sample", nil},
	{"inference/kvcache", []string{"kernels"}},
	{"inference/model", []string{"inference/gguf", "inference/kvcache", "kernels", "kernels/quant"}},
	{"inference/engine", []string{"inference/...", "kernels", "kernels/auto"}},
	{"inference/tinymodel", []string{"inference/gguf", "kernels/quant"}},

	// Confinement: knows nothing of agents.
	{"sandbox", []string{"sandbox/grant", "sandbox/mount", "sandbox/toolabi"}},
	{"sandbox/mount", []string{"sandbox/grant"}},
	{"sandbox/grant", nil},
	{"sandbox/toolabi", nil},
	{"sandbox/toolset", []string{"sandbox/toolabi"}},
	{"sandbox/sandboxtest", []string{"sandbox/..."}},

	// Guests.
	{"tools-wasm/...", []string{"sandbox/toolabi"}},

	// The agent.
	{"core/message", nil},
	{"core/permission", nil},
	{"core/spelling", nil},
	{"core/atomicfile", nil},
	{"core/config", []string{"core/spelling"}},
	{"core/store", nil},
	{"core/store/storetest", []string{"core/store"}},
	{"core/modelstore", []string{"core/atomicfile"}},
	{"core/event", []string{"core/message"}},
	{"core/llm", []string{"core/message"}},
	{"core/tool", []string{"core/permission"}},
	{"core/prompt", nil},
	{"core/session", []string{"core/store", "core/message", "core/event", "core/atomicfile"}},
	// agent and service know the errors of the store (a full disk, a damaged session), not the store.
	{"core/agent", []string{"core/llm", "core/tool", "core/session", "core/permission", "core/event", "core/message", "core/store"}},
	{"core/llm/script", []string{"core/llm", "core/message"}},
	{"core/service", []string{"core/agent", "core/session", "core/permission", "core/event", "core/message", "core/llm", "core/tool", "core/store"}},
	// The three crossings between core and what lies below it.
	{"core/llm/local", []string{"core/llm", "core/message", "inference/..."}},
	{"core/tool/sandboxed", []string{"core/tool", "core/permission", "sandbox", "sandbox/grant", "sandbox/mount", "sandbox/toolset", "sandbox/toolabi"}},
	{"core/inspect", []string{"inference/...", "kernels/..."}},
	// The composition root.
	{"core/app", []string{"core/..."}},

	// Front ends.
	{"cmd/atoll", []string{"core/app", "core/inspect", "core/service", "core/event", "core/message", "core/modelstore", "core/permission", "core/config", "core/spelling", "core/atomicfile"}},
	{"cmd/internal/lint", nil},
}

// Restriction names the only packages that may import something from outside.
// Path is an import path or, with a trailing "/...", everything below it.
type Restriction struct {
	Path string
	Only []string
}

// External is the table of restricted imports from outside the repository.
var External = []Restriction{
	{"github.com/cockroachdb/pebble/v2/...", []string{"core/store", "core/store/storetest"}},
	{"github.com/tetratelabs/wazero/...", []string{"sandbox", "sandbox/mount"}},
	{"github.com/urfave/cli/v2/...", []string{"cmd/atoll"}},
	{"mvdan.cc/sh/v3/...", []string{"tools-wasm/bash", "core/permission"}},
	// Shipped code does not carry the test framework.
	{"testing/...", nil},
	{"github.com/rogpeppe/go-internal/testscript/...", nil},
	// No cgo in this build; kernels/cuda will be the one exception.
	{"C", nil},
}

// Testers are the packages that exist for tests and so may import testing. No
// shipped package may import them, whatever its rule says.
var Testers = []string{"core/store/storetest", "kernels/kerneltest", "sandbox/sandboxtest", "tools-wasm/internal/tooltest"}

// Assembly names the only packages that may hold .s files.
var Assembly = []string{"kernels/cpu"}

// Package is what `go list -json` tells about a package.
type Package struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
	SFiles     []string
}

// CheckImports returns a line for each import of a repository package that the
// tables do not allow. Imports made by tests are not looked at: a test may reach
// for anything, since it ships nowhere.
func CheckImports(pkgs []Package) []string {
	var bad []string
	for _, p := range pkgs {
		name, ours := local(p.ImportPath)
		if !ours {
			continue
		}
		rule := slices.IndexFunc(Imports, func(r Rule) bool { return fits(name, r.Package) })
		if rule < 0 {
			bad = append(bad, fmt.Sprintf("%s: no rule in cmd/internal/lint/imports.go", name))
			continue
		}
		r := Imports[rule]
		for _, imp := range p.Imports {
			if target, ours := local(imp); ours {
				own := strings.HasSuffix(r.Package, "/...") && fits(target, r.Package)
				if slices.Contains(Testers, target) && !slices.Contains(Testers, name) {
					bad = append(bad, fmt.Sprintf("%s: ships, so it may not import %s", name, target))
					continue
				}
				if !own && !slices.ContainsFunc(r.Allow, func(a string) bool { return fits(target, a) }) {
					bad = append(bad, fmt.Sprintf("%s: may not import %s", name, target))
				}
				continue
			}
			for _, x := range External {
				tester := strings.HasPrefix(imp, "testing") && slices.Contains(Testers, name)
				if fits(imp, x.Path) && !tester && !slices.Contains(x.Only, name) {
					bad = append(bad, fmt.Sprintf("%s: may not import %s", name, imp))
				}
			}
		}
		if len(p.CgoFiles) > 0 {
			bad = append(bad, fmt.Sprintf("%s: may not use cgo (%s)", name, strings.Join(p.CgoFiles, " ")))
		}
		if len(p.SFiles) > 0 && !slices.Contains(Assembly, name) {
			bad = append(bad, fmt.Sprintf("%s: may not hold assembly (%s)", name, strings.Join(p.SFiles, " ")))
		}
	}
	return bad
}

// local strips the module from an import path.
func local(path string) (string, bool) {
	return strings.CutPrefix(path, Module+"/")
}

// fits reports whether a path is the pattern or lies below it.
func fits(path, pattern string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == dir || strings.HasPrefix(path, dir+"/")
	}
	return path == pattern
}
