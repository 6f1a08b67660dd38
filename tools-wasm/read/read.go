// Package read is the tool that shows a file, or some of its lines.
//
// The cost follows the answer: memory does not grow with the file or its lines, skipped lines are only
// counted, and a binary file is told by its first bytes.
package read

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"

	"atoll/tools-wasm/internal/guest"
	"atoll/tools-wasm/internal/text"
)

const (
	maxLines = 2000     // lines of one answer when no limit is given
	maxBytes = 48 << 10 // bytes of one answer
	maxLine  = 2000     // bytes shown of one line
	bufSize  = 1 << 18  // bytes read at once
)

// Tool declares the tool.
var Tool = &guest.Tool{
	Name:        "read",
	Description: "Read a file. Output lines are NUMBER|TEXT.",
	Params: []guest.Param{
		{Name: "path", Kind: guest.String, Required: true},
		{Name: "offset", Kind: guest.Int, Doc: "first line, from 1", Min: 1, Max: 1 << 53},
		{Name: "limit", Kind: guest.Int, Doc: "number of lines", Min: 1, Max: 1 << 53},
	},
	Run: run,
}

func run(env guest.Env, args guest.Args, out io.Writer) error {
	abs, err := env.Resolve("path", args.String("path"))
	if err != nil {
		return err
	}
	name := env.Display(abs)
	// Look before opening: a FIFO would block.
	info, err := os.Stat(abs)
	if err != nil {
		return env.Fail("read", abs, err)
	}
	if info.IsDir() {
		return errors.New("read " + name + ": is a directory; use ls")
	}
	if !info.Mode().IsRegular() {
		return errors.New("read " + name + ": not a regular file")
	}
	f, err := os.Open(abs)
	if err != nil {
		return env.Fail("read", abs, err)
	}
	defer f.Close()

	head := make([]byte, text.SniffLen)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return env.Fail("read", abs, err)
	}
	head = head[:n]
	if kind, binary := text.Kind(head), text.IsBinary(head); binary {
		if kind == "" {
			kind = "unknown format"
		}
		_, err := io.WriteString(out, "("+name+" is a binary file, not shown: "+kind+", "+guest.Size(info.Size())+")\n")
		return err
	}
	enc, mark := text.Detect(head)
	if _, err := f.Seek(int64(mark), io.SeekStart); err != nil {
		return env.Fail("read", abs, err)
	}
	p := &printer{
		r:      text.NewReader(f, enc),
		offset: args.Int("offset", 1),
		limit:  args.Int("limit", maxLines),
		given:  args.Has("offset"),
	}
	result, err := p.print()
	if err != nil {
		return env.Fail("read", abs, err)
	}
	if enc != text.None && enc != text.UTF8BOM {
		result = append(result, "(encoding: "+enc.String()+")\n"...)
	}
	_, err = out.Write(result)
	return err
}

// A printer makes the numbered lines of one answer.
type printer struct {
	r      io.Reader
	offset int // first line, from 1
	limit  int
	given  bool // the offset was asked for

	buf        []byte // unread part of what was read
	store      []byte // backing of buf
	eof        bool
	out        []byte
	crlf       bool
	escaped    bool
	incomplete bool // the last line read had no newline
}

// fill reads more when nothing is unread. At the end of the input buf stays empty.
func (p *printer) fill() error {
	if p.store == nil {
		p.store = make([]byte, bufSize)
	}
	for len(p.buf) == 0 && !p.eof {
		n, err := p.r.Read(p.store)
		p.buf = p.store[:n]
		if errors.Is(err, io.EOF) {
			p.eof = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) print() ([]byte, error) {
	skipped, err := p.skip()
	if err != nil {
		return nil, err
	}
	if len(p.buf) == 0 {
		return p.nothing(skipped), nil
	}
	line := p.offset
	for shown := 0; ; shown++ {
		if err := p.fill(); err != nil {
			return nil, err
		}
		if len(p.buf) == 0 {
			break
		}
		if shown >= p.limit || len(p.out) >= maxBytes {
			p.out = append(p.out, "(more lines follow; continue with offset "+strconv.Itoa(line)+")\n"...)
			break
		}
		if err := p.line(line); err != nil {
			return nil, err
		}
		line++
	}
	if p.crlf {
		p.out = append(p.out, "(line ends: CRLF)\n"...)
	}
	if p.escaped {
		p.out = append(p.out, "(not UTF-8: bytes shown as \\xNN)\n"...)
	}
	return p.out, nil
}

// skip passes over the lines before the first one and returns how many there were.
func (p *printer) skip() (int, error) {
	skipped := 0
	for skipped < p.offset-1 {
		if err := p.fill(); err != nil {
			return 0, err
		}
		if len(p.buf) == 0 {
			if p.incomplete {
				skipped++
			}
			return skipped, nil
		}
		n := text.CountLines(p.buf)
		if want := p.offset - 1 - skipped; n >= want {
			p.buf = p.buf[text.AfterLine(p.buf, want):]
			skipped += want
			break
		}
		skipped += n
		p.incomplete = p.buf[len(p.buf)-1] != '\n'
		p.buf = nil
	}
	return skipped, p.fill()
}

func (p *printer) nothing(skipped int) []byte {
	if skipped == 0 {
		return []byte("(empty file)\n")
	}
	return []byte("(offset " + strconv.Itoa(p.offset) + " is past the end: the file has " + strconv.Itoa(skipped) + " lines)\n")
}

// line appends one line with its number, clamped.
func (p *printer) line(number int) error {
	var shown []byte
	length := 0
	last := byte(0)
	for {
		if err := p.fill(); err != nil {
			return err
		}
		if len(p.buf) == 0 {
			break
		}
		end := bytes.IndexByte(p.buf, '\n')
		chunk := p.buf
		if end >= 0 {
			chunk = p.buf[:end]
		}
		if room := maxLine + 4 - len(shown); room > 0 {
			shown = append(shown, chunk[:min(room, len(chunk))]...)
		}
		length += len(chunk)
		if len(chunk) > 0 {
			last = chunk[len(chunk)-1]
		}
		if end >= 0 {
			p.buf = p.buf[end+1:]
			if last == '\r' && length > 0 {
				p.crlf = true
				length--
				shown = shown[:min(len(shown), length)]
			}
			break
		}
		p.buf = nil
	}
	p.out = append(strconv.AppendInt(p.out, int64(number), 10), '|')
	clipped := text.Clip(shown, maxLine)
	var escaped bool
	p.out, escaped = text.AppendVisible(p.out, clipped)
	p.escaped = p.escaped || escaped
	if length > len(clipped) {
		p.out = append(p.out, "... (line cut, "+strconv.Itoa(length)+" bytes long)"...)
	}
	p.out = append(p.out, '\n')
	return nil
}
