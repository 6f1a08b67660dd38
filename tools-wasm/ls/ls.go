// Package ls is the tool that lists one directory.
package ls

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"

	"atoll/tools-wasm/internal/guest"
)

const (
	maxShown = 500      // entries of one answer
	maxBytes = 32 << 10 // and its bytes
	maxRead  = 50_000   // entries looked at
	// showSize is the size from which a file's size is shown. Sizes cost tokens on every line; the one
	// use a model has for them is to not read what is huge.
	showSize = 100 << 10
)

// Tool declares the tool.
var Tool = &guest.Tool{
	Name:        "ls",
	Description: "List a directory.",
	Params:      []guest.Param{{Name: "path", Kind: guest.String}},
	Run:         run,
}

func run(env guest.Env, args guest.Args, out io.Writer) error {
	p := args.String("path")
	if !args.Has("path") || p == "" {
		p = "."
	}
	abs, err := env.Resolve("path", p)
	if err != nil {
		return err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return env.Fail("list", abs, err)
	}
	if !info.IsDir() {
		_, err := io.WriteString(out, env.Display(abs)+" is a file ("+guest.Size(info.Size())+"); use read\n")
		return err
	}
	f, err := os.Open(abs)
	if err != nil {
		return env.Fail("list", abs, err)
	}
	defer f.Close()
	var entries []fs.DirEntry
	for len(entries) < maxRead {
		batch, err := f.ReadDir(1024)
		entries = append(entries, batch...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return env.Fail("list", abs, err)
		}
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	var b strings.Builder
	for i, e := range entries {
		if i == maxShown || b.Len() >= maxBytes {
			more := strconv.Itoa(len(entries) - i)
			if len(entries) >= maxRead {
				more = "at least " + more
			}
			b.WriteString("(" + more + " more entries not shown; use glob to narrow)\n")
			break
		}
		b.WriteString(describe(abs, e) + "\n")
	}
	if len(entries) == 0 {
		b.WriteString("(empty directory)\n")
	}
	_, err = io.WriteString(out, b.String())
	return err
}

// describe returns the name of an entry, with a mark for what is not a plain file.
func describe(dir string, e fs.DirEntry) string {
	name := guest.Visible(e.Name())
	switch t := e.Type(); {
	case t.IsDir():
		return name + "/"
	case t&fs.ModeSymlink != 0:
		if target, err := os.Readlink(path.Join(dir, e.Name())); err == nil {
			return name + " -> " + guest.Visible(target)
		}
		return name + " -> ?"
	case !t.IsRegular():
		return name + " (special file)"
	}
	if info, err := e.Info(); err == nil && info.Size() >= showSize {
		name += " (" + guest.Size(info.Size()) + ")"
	}
	return name
}
