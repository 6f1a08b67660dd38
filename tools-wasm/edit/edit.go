// Package edit is the tool that replaces text in a file.
//
// Bytes outside the replaced text never change: line ends, byte order mark, final newline, text that is
// not UTF-8. What is not found exactly is looked for tolerantly (match.go); a tolerant match is applied
// as the difference between old and new, so that what the model did not mean to change keeps the file's
// own spelling (splice.go). Anything ambiguous is refused.
package edit

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"atoll/tools-wasm/internal/guest"
	"atoll/tools-wasm/internal/text"
)

// maxFile bounds the size of a file that can be edited. Several copies of it are held.
const maxFile = 16 << 20

// Tool declares the tool.
var Tool = &guest.Tool{
	Name:        "edit",
	Description: "Replace old with new in a file. Copy old exactly from the file, without line numbers.",
	Params: []guest.Param{
		{Name: "path", Kind: guest.String, Required: true},
		{Name: "old", Kind: guest.String, Required: true},
		{Name: "new", Kind: guest.String, Required: true},
		{Name: "all", Kind: guest.Bool, Doc: "replace every match"},
	},
	Writes: true,
	Run:    run,
}

func run(env guest.Env, args guest.Args, out io.Writer) error {
	abs, err := env.Resolve("path", args.String("path"))
	if err != nil {
		return err
	}
	old, repl := args.String("old"), args.String("new")
	name := env.Display(abs)
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) && old == "" && env.Inside(abs) {
		return create(env, abs, repl, out)
	}
	fail := func(cause string) error { return errors.New("edit " + name + ": " + cause) }
	switch {
	case err != nil:
		return env.Fail("edit", abs, err)
	case info.IsDir():
		return fail("is a directory")
	case !info.Mode().IsRegular():
		return fail("not a regular file")
	case info.Size() > maxFile:
		return fail("the file has " + guest.Size(info.Size()) + ", more than the " + guest.Size(maxFile) + " that edit takes")
	}
	raw, err := os.ReadFile(abs)
	if err != nil {
		return env.Fail("edit", abs, err)
	}
	if text.IsBinary(raw) {
		return fail("is a binary file")
	}
	enc, mark := text.Detect(raw)
	content := raw[mark:]
	if enc == text.UTF16LE || enc == text.UTF16BE {
		if content, err = text.DecodeUTF16(content, enc); err != nil {
			return fail(err.Error() + ", the file was not changed")
		}
	}
	result, err := Apply(content, old, repl, args.Bool("all"))
	if err != nil {
		return fail(err.Error())
	}
	changed := result.Content
	if enc == text.UTF16LE || enc == text.UTF16BE {
		changed = text.EncodeUTF16(changed, enc)
	}
	changed = append(bytes.Clone(raw[:mark]), changed...)
	if err := guest.Replace(abs, raw, changed); err != nil {
		return env.Fail("edit", abs, err)
	}
	_, err = io.WriteString(out, report(name, content, result))
	return err
}

// create serves the habit of some models to create a file by an edit of nothing.
func create(env guest.Env, abs, content string, out io.Writer) error {
	if err := os.MkdirAll(path.Dir(abs), 0o755); err != nil {
		return env.Fail("edit", abs, err)
	}
	if err := os.WriteFile(abs, []byte(content), 0o644); err != nil {
		return env.Fail("edit", abs, err)
	}
	_, err := io.WriteString(out, "created "+env.Display(abs)+" ("+guest.Size(int64(len(content)))+")\n")
	return err
}

// A Result is a changed content and how it came about.
type Result struct {
	Content []byte
	// Count is how many places were replaced.
	Count int
	// How says what was ignored to find a tolerant match; empty for an exact one.
	How string
}

// Apply replaces old by repl in content, which is text without a byte order mark, mostly UTF-8. Old must
// be found exactly once, or all must be set. On error nothing is changed; errors are messages for the
// model.
func Apply(content []byte, old, repl string, all bool) (Result, error) {
	if old == repl {
		return Result{}, errors.New("old and new are the same")
	}
	if old == "" {
		return Result{}, errors.New("old is empty; to replace the whole file use write")
	}
	legacy := !utf8.Valid(content)
	if legacy && !ascii(repl) {
		return Result{}, errors.New("the file is not UTF-8 and new has characters outside ASCII; it was not changed")
	}
	f := newFile(content)
	m, err := find(f, old, repl, all)
	if err != nil {
		return Result{}, err
	}
	out := make([]byte, 0, len(content)+len(repl))
	pos := 0
	for _, r := range m.replacements {
		if legacy && r.start > 0 && content[r.start-1] >= 0x81 && content[r.start] >= 0x40 {
			return Result{}, errors.New("the file is not UTF-8 and old may start within a two-byte character; it was not changed")
		}
		out = append(append(out, content[pos:r.start]...), r.text...)
		pos = r.end
	}
	out = append(out, content[pos:]...)
	if bytes.Equal(out, content) {
		return Result{}, errors.New("the change has no effect: the file already is as new says")
	}
	return Result{Content: out, Count: len(m.replacements), How: m.how}, nil
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// report says in few words what changed, with the changed lines as they are now.
func report(name string, before []byte, r Result) string {
	const context, most = 1, 12
	var b strings.Builder
	b.WriteString("edited " + name)
	if r.Count > 1 {
		b.WriteString(", " + strconv.Itoa(r.Count) + " places")
	}
	if r.How != "" {
		b.WriteString(" (found by ignoring " + r.How + ")")
	}
	b.WriteString("\n")

	after := r.Content
	old, now := splitLines(before), splitLines(after)
	head := 0
	for head < min(len(old), len(now)) && bytes.Equal(old[head], now[head]) {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && bytes.Equal(old[len(old)-1-tail], now[len(now)-1-tail]) {
		tail++
	}
	from, to := max(0, head-context), min(len(now), len(now)-tail+context)
	for i := from; i < to; i++ {
		if i-from == most {
			b.WriteString("(" + strconv.Itoa(to-i) + " more lines)\n")
			break
		}
		line := []byte(strconv.Itoa(i+1) + "|")
		line, _ = text.AppendVisible(line, text.Clip(bytes.TrimRight(now[i], "\r\n"), 200))
		b.Write(append(line, '\n'))
	}
	if len(after) == 0 {
		b.WriteString("(the file is empty now)\n")
	}
	return b.String()
}
