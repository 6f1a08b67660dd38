// Package walk visits the files below a directory in a stable order, without what ignore files hide,
// without following symbolic links and within bounds.
package walk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"

	"atoll/tools-wasm/internal/ignore"
)

// Default bounds of a walk.
const (
	DefaultMaxEntries = 200_000
	maxPath           = 4096
)

// Options say where to walk.
type Options struct {
	// Root is the directory to start from, an absolute clean path.
	Root string
	// Workspace bounds where ignore files are looked for above Root. Rules of the directories between
	// the two hold, so that a walk from below sees what a walk from the top sees there.
	Workspace string
	// Bundle is the ignore files above the workspace (see ignore.Bundle). Empty: none.
	Bundle string
	// MaxEntries bounds how many directory entries are looked at. 0: DefaultMaxEntries.
	MaxEntries int
}

// An Entry is a file, a symbolic link or something special; directories are not reported.
type Entry struct {
	Path string      // absolute
	Type fs.FileMode // type bits only, 0 for a regular file
}

// Stats tell what a walk could not show.
type Stats struct {
	Unreadable int  // directories that could not be read
	Cut        bool // a bound was hit: there may be more
}

// Walk calls visit for every entry below Root: within a directory in the order of names, a directory's
// content at its place. A directory named .git is never entered. Where visit returns fs.SkipAll the
// walk ends without error; other errors end it and are returned.
func Walk(o Options, visit func(Entry) error) (Stats, error) {
	w := &walker{workspace: o.Workspace, left: o.MaxEntries, visit: visit}
	if w.left == 0 {
		w.left = DefaultMaxEntries
	}
	names, err := w.list(o.Root)
	if err != nil {
		return w.stats, err
	}
	err = w.dir(o.Root, names, above(o))
	if errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return w.stats, err
}

// above returns the rules that hold in Root from outside it. When they hide Root itself, it was asked
// for by name and they are left out.
func above(o Options) *ignore.Level {
	rules := ignore.Unbundle(o.Bundle)
	rel, inside := strings.CutPrefix(o.Root+"/", strings.TrimSuffix(o.Workspace, "/")+"/")
	if !inside {
		return nil
	}
	if rules.Ignored(o.Workspace, true) {
		rules = nil
	}
	dir := o.Workspace
	for rel = strings.TrimSuffix(rel, "/"); rel != ""; {
		names, err := os.ReadDir(dir)
		if err != nil {
			return rules
		}
		rules = enter(dir, names, rules, dir == o.Workspace)
		var name string
		name, rel, _ = strings.Cut(rel, "/")
		dir = path.Join(dir, name)
		if rules.Ignored(dir, true) {
			rules = nil
		}
	}
	return rules
}

// enter adds the rules of the ignore files of dir. A repository within the workspace is a world of its
// own, as it is for git: rules from outside it do not reach in.
func enter(dir string, names []fs.DirEntry, rules *ignore.Level, top bool) *ignore.Level {
	var own, git fs.DirEntry
	for _, n := range names {
		switch n.Name() {
		case ".gitignore":
			own = n
		case ".git":
			git = n
		}
	}
	if git != nil {
		if !top {
			rules = nil
		}
		if git.IsDir() {
			rules = rules.Push(dir, readRules(path.Join(dir, ".git/info/exclude")))
		}
	}
	if own != nil && own.Type().IsRegular() { // git does not follow a link here either
		rules = rules.Push(dir, readRules(path.Join(dir, ".gitignore")))
	}
	return rules
}

func readRules(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20+1))
	if err != nil {
		return nil
	}
	return data
}

type walker struct {
	workspace string
	left      int // entries that may still be looked at
	visit     func(Entry) error
	stats     Stats
}

// list returns the sorted entries of a directory, at most as many as the bound leaves.
func (w *walker) list(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []fs.DirEntry
	for {
		batch, err := f.ReadDir(1024)
		names = append(names, batch...)
		w.left -= len(batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if w.left <= 0 {
			w.stats.Cut = true
			break
		}
	}
	sort.Slice(names, func(i, j int) bool { return names[i].Name() < names[j].Name() })
	return names, nil
}

func (w *walker) dir(dir string, names []fs.DirEntry, rules *ignore.Level) error {
	rules = enter(dir, names, rules, dir == w.workspace)
	for _, n := range names {
		p := path.Join(dir, n.Name())
		if n.Name() == ".git" {
			continue
		}
		if rules.Ignored(p, n.IsDir()) {
			continue
		}
		if !n.IsDir() {
			if err := w.visit(Entry{Path: p, Type: n.Type()}); err != nil {
				return err
			}
			continue
		}
		if len(p) > maxPath || w.left <= 0 {
			w.stats.Cut = true
			continue
		}
		below, err := w.list(p)
		if err != nil {
			w.stats.Unreadable++
			continue
		}
		if err := w.dir(p, below, rules); err != nil {
			return err
		}
	}
	return nil
}

// Note returns a line for the result when the walk could not show everything, else "".
func (s Stats) Note() string {
	note := ""
	if s.Cut {
		note += "(the tree is too large: not all of it was searched; give a path)\n"
	}
	if s.Unreadable > 0 {
		note += "(" + strconv.Itoa(s.Unreadable) + " directories could not be read)\n"
	}
	return note
}
