// Package grep is the tool that searches the content of files.
//
// Memory does not grow with the files: they are read in chunks and judged line by line. Most lines are
// never looked at by the regular expression engine: what every match must contain is searched for first
// (literals.go).
package grep

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
	maxMatches = 100
	maxBytes   = 32 << 10 // bytes of one answer
	maxLine    = 300      // bytes shown of a line
	maxContext = 20
)

// Tool declares the tool.
var Tool = &guest.Tool{
	Name:        "grep",
	Description: "Search file contents by regular expression.",
	Params: []guest.Param{
		{Name: "pattern", Kind: guest.String, Required: true},
		{Name: "path", Kind: guest.String, Doc: "file or directory"},
		{Name: "glob", Kind: guest.String, Doc: "only these files, like *.go"},
		{Name: "context", Kind: guest.Int, Doc: "lines around a match", Max: maxContext},
		{Name: "ignore_case", Kind: guest.Bool},
		{Name: "literal", Kind: guest.Bool, Doc: "pattern is plain text"},
	},
	Run: run,
}

func run(env guest.Env, args guest.Args, out io.Writer) error {
	m, err := newMatcher(args.String("pattern"), args.Bool("ignore_case"), args.Bool("literal"))
	if err != nil {
		return err
	}
	only, err := newFilter(args.String("glob"))
	if err != nil {
		return err
	}
	start := "."
	if p := args.String("path"); p != "" {
		start = p
	}
	abs, err := env.Resolve("path", start)
	if err != nil {
		return err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return env.Fail("search", abs, err)
	}
	s := &search{env: env, matcher: m, context: args.Int("context", 0)}
	var stats walk.Stats
	if info.IsDir() {
		stats, err = walk.Walk(walk.Options{Root: abs, Workspace: env.Dir, Bundle: env.Ignore}, func(e walk.Entry) error {
			rel := strings.TrimPrefix(strings.TrimPrefix(e.Path, abs), "/")
			if !e.Type.IsRegular() || !only.takes(rel) {
				return nil
			}
			if err := s.file(e.Path); err != nil {
				s.unreadable++
			}
			if s.full {
				return fs.SkipAll
			}
			return nil
		})
	} else if !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	} else {
		err = s.file(abs)
	}
	if err != nil {
		return env.Fail("search", abs, err)
	}
	_, err = io.WriteString(out, s.result()+stats.Note())
	return err
}

// A search collects the matches of one call.
type search struct {
	env        guest.Env
	matcher    *matcher
	context    int
	out        []byte
	matches    int
	full       bool // a bound was hit: there may be more matches
	binary     int  // files skipped
	unreadable int
	buf        []byte // chunk buffer, kept from file to file
}

func (s *search) result() string {
	out := string(s.out)
	switch {
	case s.full:
		out += "(only the first " + strconv.Itoa(s.matches) + " matches are shown; use a narrower pattern, path or glob)\n"
	case s.matches == 0:
		out += "(no matches)\n"
	}
	if s.binary > 0 {
		out += "(" + count(s.binary, "binary file") + " not searched)\n"
	}
	if s.unreadable > 0 {
		out += "(" + count(s.unreadable, "file") + " could not be read)\n"
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// A filter is the glob argument: a pattern without a slash is for the name of the file, one with a slash
// for its path below the start of the search. Empty takes every file.
type filter struct {
	pattern string
	byName  bool
}

func newFilter(glob string) (filter, error) {
	glob = strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
	if !doublestar.ValidatePattern(glob) {
		return filter{}, &guest.ArgError{Arg: "glob", Want: "malformed pattern " + guest.Quote(glob)}
	}
	if strings.HasSuffix(glob, "/") {
		glob += "**"
	}
	return filter{glob, !strings.Contains(glob, "/")}, nil
}

func (f filter) takes(rel string) bool {
	if f.pattern == "" {
		return true
	}
	if f.byName {
		rel = path.Base(rel)
	}
	ok, err := doublestar.Match(f.pattern, rel)
	return ok && err == nil
}
