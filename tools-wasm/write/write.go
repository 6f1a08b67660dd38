// Package write is the tool that creates a file or overwrites one with the content it is given, byte
// for byte.
package write

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"

	"atoll/tools-wasm/internal/guest"
	"atoll/tools-wasm/internal/text"
)

// keepOld bounds the size of a file whose old content is read before it is overwritten, so that it can
// be put back when writing fails.
const keepOld = 16 << 20

// Tool declares the tool.
var Tool = &guest.Tool{
	Name:        "write",
	Description: "Create or overwrite a whole file.",
	Params: []guest.Param{
		{Name: "path", Kind: guest.String, Required: true},
		{Name: "content", Kind: guest.String, Required: true},
	},
	Writes: true,
	Run:    run,
}

func run(env guest.Env, args guest.Args, out io.Writer) error {
	p := args.String("path")
	abs, err := env.Resolve("path", p)
	if err != nil {
		return err
	}
	if p[len(p)-1] == '/' {
		return &guest.ArgError{Arg: "path", Want: "expected a file, not a directory"}
	}
	content := []byte(args.String("content"))
	info, err := os.Stat(abs)
	switch {
	case err == nil && info.IsDir():
		return errors.New("write " + env.Display(abs) + ": is a directory")
	case err == nil && !info.Mode().IsRegular():
		return errors.New("write " + env.Display(abs) + ": not a regular file")
	case err == nil:
		if err := overwrite(abs, info.Size(), content); err != nil {
			return env.Fail("write", abs, err)
		}
		_, err = io.WriteString(out, "overwrote "+env.Display(abs)+" ("+guest.Size(info.Size())+" before, "+guest.Size(int64(len(content)))+" now)\n")
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return env.Fail("write", abs, err)
	}
	if err := create(abs, content); err != nil {
		return env.Fail("write", abs, err)
	}
	_, err = io.WriteString(out, "created "+env.Display(abs)+" ("+guest.Size(int64(len(content)))+", "+strconv.Itoa(lines(content))+" lines)\n")
	return err
}

func overwrite(abs string, size int64, content []byte) error {
	if size > keepOld {
		f, err := os.OpenFile(abs, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		return errors.Join(err, f.Close())
	}
	old, err := os.ReadFile(abs)
	if err != nil {
		// A file that may be written but not read is still overwritten.
		old = nil
	}
	return guest.Replace(abs, old, content)
}

// create makes the file and the directories above it; a file that could not be written whole is
// removed again.
func create(abs string, content []byte) error {
	if err := os.MkdirAll(path.Dir(abs), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(abs, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(abs)
	}
	return err
}

// lines counts also a last line without an end.
func lines(b []byte) int {
	n := text.CountLines(b)
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}
