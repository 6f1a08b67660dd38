package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"atoll/core/modelstore"
)

// keyboard hands out lines of standard input, one for each request: what nobody
// asked for stays unread.
type keyboard struct {
	want chan struct{}
	got  chan typed
}

type typed struct {
	line string
	err  error
}

// maxTyped is the longest line that is taken, in bytes.
const maxTyped = 1 << 20

// readLine returns the next line of standard input without its end, or ctx's
// error. Reads cannot be cancelled, so a goroutine makes them; a line that comes
// after ctx ended is for the next call.
func (p *program) readLine(ctx context.Context) (string, error) {
	p.keysOnce.Do(func() {
		k := &keyboard{want: make(chan struct{}, 1), got: make(chan typed)}
		r := bufio.NewReader(p.stdin)
		go func() {
			for range k.want {
				line, err := readBounded(r, maxTyped)
				k.got <- typed{line, err}
			}
		}()
		p.keys = k
	})
	select {
	case p.keys.want <- struct{}{}:
	default: // an earlier request is still open
	}
	select {
	case t := <-p.keys.got:
		return t.line, t.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func readBounded(r *bufio.Reader, n int) (string, error) {
	var b []byte
	for {
		chunk, err := r.ReadSlice('\n')
		if len(b)+len(chunk) > n {
			return "", fmt.Errorf("a line longer than %d bytes", n)
		}
		b = append(b, chunk...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(b) > 0, err == nil:
			return strings.TrimRight(string(b), "\r\n"), nil
		default:
			return "", err
		}
	}
}

// canAsk reports whether there is a person at both ends.
func (p *program) canAsk() bool { return p.stdinTTY && p.stderrTTY }

// confirm asks a yes-or-no question on the terminal.
func (p *program) confirm(ctx context.Context, question string, yes bool) (bool, error) {
	choice := "[y/N]"
	if yes {
		choice = "[Y/n]"
	}
	for {
		fmt.Fprintf(p.stderr, "%s %s ", visible(question), choice)
		line, err := p.readLine(ctx)
		if err != nil {
			fmt.Fprintln(p.stderr)
			return false, err
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "":
			return yes, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}

// offerModel asks whether a model that is not there should be fetched. It
// returns the error unchanged where nobody can be asked.
func (p *program) offerModel(ctx context.Context, missing error) error {
	var m *modelstore.MissingError
	if !errors.As(missing, &m) || !p.canAsk() {
		return missing
	}
	ok, err := p.confirm(ctx, fmt.Sprintf("The model %s is not there. Fetch it (%s)?", m.Name, modelstore.FormatBytes(m.Size)), true)
	if err != nil || !ok {
		return missing
	}
	store, err := p.models()
	if err != nil {
		return err
	}
	_, err = p.pull(ctx, store, m.Name, modelstore.SourceAuto)
	return err
}

// dialogue takes one prompt after the other: atoll on a terminal.
func (p *program) dialogue(c *cli.Context) error {
	ctx := c.Context
	svc, err := p.openToRun(c)
	if err != nil {
		return err
	}
	defer svc.Close()
	sess, err := p.session(c, svc)
	if err != nil {
		return err
	}
	defer sess.Close()
	p.note("session %s, %s; an empty line or Ctrl-D ends it, Ctrl-C stops a turn", sess.ID(), sess.Mode())
	for {
		fmt.Fprint(p.stderr, "> ")
		line, err := p.readLine(ctx)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(p.stderr)
			return nil
		}
		if err != nil {
			return err
		}
		switch strings.TrimSpace(line) {
		case "", "exit", "quit", "/exit", "/quit":
			return nil
		case "help", "/help", "?":
			p.note("write what is to be done; an empty line, exit or Ctrl-D ends it, Ctrl-C stops a turn; flags: atoll --help")
			continue
		}
		text, err := p.readPrompt(strings.ToValidUTF8(line, "\ufffd"))
		if err != nil {
			return err
		}
		v, err := p.newView(formatText)
		if err != nil {
			return err
		}
		turn, cancel := context.WithCancel(ctx)
		release := p.signals.intercept(cancel)
		r, err := p.turn(turn, sess, text, v)
		release()
		cancel()
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return p.finish(ctx, v, r)
		}
		if err := v.finish(r); err != nil {
			return err
		}
		if r.IsError && r.Error != "" {
			p.note("atoll: %s", r.Error)
		}
	}
}
