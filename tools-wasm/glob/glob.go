// Package glob is the tool that finds files by the pattern of their path.
package glob

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"atoll/tools-wasm/internal/guest"
	"atoll/tools-wasm/internal/walk"
)

const (
	maxShown = 200      // paths of one answer
	maxBytes = 32 << 10 // and its bytes
)

// Tool declares the tool.
var Tool = &guest.Tool{
	Name:        "glob",
	Description: "Find files by path pattern, like **/*.go.",
	Params: []guest.Param{
		{Name: "pattern", Kind: guest.String, Required: true},
		{Name: "path", Kind: guest.String, Doc: "directory to start from"},
	},
	Run: run,
}

func run(env guest.Env, args guest.Args, out io.Writer) error {
	pattern := args.String("pattern")
	start := "."
	if p := args.String("path"); p != "" {
		start = p
	}
	abs, err := env.Resolve("path", start)
	if err != nil {
		return err
	}
	// A pattern that spells out the workspace, or starts with a plain directory, starts there.
	if strings.HasPrefix(pattern, "/") {
		base, rest := doublestar.SplitPattern(pattern)
		abs, pattern = path.Clean(base), rest
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if pattern == "" {
		return &guest.ArgError{Arg: "pattern", Want: "expected a pattern such as **/*.go"}
	}
	if !doublestar.ValidatePattern(pattern) {
		return &guest.ArgError{Arg: "pattern", Want: "malformed pattern " + guest.Quote(pattern)}
	}
	base, pattern := plainStart(pattern)
	abs = path.Join(abs, base)
	if info, err := os.Stat(abs); err != nil {
		return env.Fail("search", abs, err)
	} else if !info.IsDir() {
		return env.Fail("search", abs, errNotDir)
	}

	var b strings.Builder
	found, cut := 0, false
	stats, err := walk.Walk(walk.Options{Root: abs, Workspace: env.Dir, Bundle: env.Ignore}, func(e walk.Entry) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(e.Path, abs), "/")
		if ok, _ := doublestar.Match(pattern, rel); !ok || !isFile(e) {
			return nil
		}
		if found == maxShown || b.Len() >= maxBytes {
			cut = true
			return fs.SkipAll
		}
		found++
		b.WriteString(env.Display(e.Path) + "\n")
		return nil
	})
	if err != nil {
		return env.Fail("search", abs, err)
	}
	switch {
	case cut:
		b.WriteString("(only the first " + strconv.Itoa(found) + " files are shown; use a narrower pattern)\n")
	case found == 0:
		b.WriteString("(no files match)\n")
	}
	b.WriteString(stats.Note())
	_, err = io.WriteString(out, b.String())
	return err
}

// plainStart splits off the leading directories of a pattern that have no wildcard, so that the walk
// need not visit the rest of the tree. The last element always stays.
func plainStart(pattern string) (base, rest string) {
	for {
		dir, after, ok := strings.Cut(pattern, "/")
		if !ok || after == "" || strings.ContainsAny(dir, `*?[{\`) {
			return base, pattern
		}
		base, pattern = path.Join(base, dir), after
	}
}

// isFile tells whether the entry is a regular file or a link to one.
func isFile(e walk.Entry) bool {
	if e.Type&fs.ModeSymlink == 0 {
		return e.Type.IsRegular()
	}
	info, err := os.Stat(e.Path)
	return err == nil && info.Mode().IsRegular()
}

var errNotDir = errors.New("is not a directory")
