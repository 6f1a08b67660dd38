package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"atoll/core/event"
	"atoll/core/permission"
	"atoll/core/service"
)

// maxPrompt is the longest prompt in bytes that is read from standard input.
const maxPrompt = 4 << 20

func workspaceFlag() cli.Flag {
	return &cli.StringFlag{Name: "C", Usage: "work in `DIR` instead of the current directory"}
}

func modelFlag() cli.Flag {
	return &cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "`MODEL` is a name of \"atoll model list\", a GGUF file, or (for prompts) script:FILE"}
}

func threadsFlag() cli.Flag {
	return &cli.IntFlag{Name: "threads", Aliases: []string{"t"}, Usage: "`N` worker threads (0: one for each core)"}
}

// runFlags are those of a prompt; they stand at the program itself and at run.
func runFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "do `PROMPT` and exit; - reads it from standard input"},
		&cli.BoolFlag{Name: "continue", Aliases: []string{"c"}, Usage: "continue the last session of the workspace"},
		&cli.StringFlag{Name: "resume", Aliases: []string{"r"}, Usage: "continue the session `ID`"},
		workspaceFlag(),
		modelFlag(),
		&cli.StringFlag{Name: "mode", Usage: "`MODE` is read-only or workspace-write; without it a continued session keeps its own"},
		&cli.StringFlag{Name: "output-format", Usage: "`FORMAT` is text, json or stream-json", Value: formatText},
		&cli.IntFlag{Name: "ctx", Usage: "context window of `N` tokens (0: what the model was trained for, within reason)"},
		threadsFlag(),
		&cli.IntFlag{Name: "max-steps", Usage: "stop a turn after `N` model steps (0: the default)"},
	}
}

func (p *program) runCommand() *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "do a prompt; the same as atoll -p PROMPT",
		ArgsUsage: "[PROMPT]",
		Flags:     runFlags(),
		Action: func(c *cli.Context) error {
			if err := arguments(c, 0, 1, "[PROMPT]"); err != nil {
				return p.failRun(c, err)
			}
			prompt, given := c.String("prompt"), c.IsSet("prompt")
			if c.Args().Present() {
				if given {
					return p.failRun(c, usagef("the prompt is given twice: with -p and as an argument"))
				}
				prompt, given = c.Args().First(), true
			}
			if !given {
				return p.failRun(c, usagef(`no prompt; usage: atoll run "PROMPT"`))
			}
			return p.prompt(c, prompt)
		},
	}
}

// root is atoll without a command.
func (p *program) root(c *cli.Context) error {
	switch {
	case c.IsSet("prompt"):
		return p.prompt(c, c.String("prompt"))
	case p.stdinTTY && p.stdoutTTY && p.stderrTTY && c.String("output-format") == formatText:
		return p.dialogue(c)
	}
	return p.failRun(c, usagef(`no prompt; give one with -p "...", or see atoll --help`))
}

// failRun ends a run that did not come to a turn, in the format that was asked for.
func (p *program) failRun(c *cli.Context, err error) error {
	v, verr := p.newView(c.String("output-format"))
	if verr != nil {
		return verr
	}
	if ferr := v.finish(p.failed(c.Context, err)); ferr != nil {
		return ferr
	}
	return err
}

// failed is the result of a run without a turn.
func (p *program) failed(ctx context.Context, err error) *service.Result {
	code := exitCode(ctx, err)
	stop := event.StopError
	if ctx.Err() != nil {
		stop = event.StopCancelled
	}
	return &service.Result{Type: "result", IsError: true, Stop: stop, Error: err.Error(), ExitCode: service.ExitCode(code), Err: err}
}

// prompt does one prompt and exits: atoll -p.
func (p *program) prompt(c *cli.Context, text string) error {
	ctx := c.Context
	v, err := p.newView(c.String("output-format"))
	if err != nil {
		return err
	}
	if text, err = p.readPrompt(text); err != nil {
		return p.failRun(c, err)
	}
	svc, err := p.openToRun(c)
	if err != nil {
		return p.failRun(c, err)
	}
	defer svc.Close()
	sess, err := p.session(c, svc)
	if err != nil {
		return p.failRun(c, err)
	}
	r, err := p.turn(ctx, sess, text, v)
	if cerr := sess.Close(); err == nil && cerr != nil && !r.IsError {
		err = cerr
	}
	if err != nil {
		return err
	}
	return p.finish(ctx, v, r)
}

// finish shows the end of a run and turns it into the program's.
func (p *program) finish(ctx context.Context, v view, r *service.Result) error {
	var stop *stopCause
	if errors.As(context.Cause(ctx), &stop) {
		r.IsError, r.Error, r.ExitCode = true, stop.text, service.ExitCode(stop.code)
	}
	if err := v.finish(r); err != nil {
		return err
	}
	if !r.IsError {
		return nil
	}
	if r.Error != "" && r.ExitCode != exitPipe {
		p.complain(errors.New(r.Error))
	}
	return &errQuiet{int(r.ExitCode)}
}

// readPrompt checks the prompt; "-" takes it from standard input.
func (p *program) readPrompt(text string) (string, error) {
	if text == "-" {
		b, err := readWhole(p.stdin, "prompt", maxPrompt)
		if err != nil {
			return "", err
		}
		text = string(b)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", usagef("the prompt is empty")
	case !utf8.ValidString(text):
		return "", usagef("the prompt is not UTF-8")
	}
	return text, nil
}

// turn runs one turn and shows it.
func (p *program) turn(ctx context.Context, sess *service.Session, text string, v view) (*service.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.showStart(sess, v); err != nil {
		return nil, err
	}
	sub := sess.Subscribe(64)
	done := make(chan service.Result, 1)
	go func() { done <- sess.Prompt(ctx, text) }()

	var failed error
	show := func(e event.Event) {
		if failed != nil {
			return
		}
		if failed = v.show(e); failed != nil {
			failed = fmt.Errorf("write output: %w", failed)
			cancel() // nobody would see the rest
			return
		}
		if ask, ok := e.Body.(event.PermissionAsked); ok {
			go p.ask(ctx, sess, ask)
		}
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case e := <-sub.C:
			show(e)
		case <-tick.C:
			v.tick()
		case r := <-done:
			sub.Close()
			for e := range sub.C {
				show(e)
			}
			return &r, failed
		}
	}
}

// showStart shows the session's first event, which names it, whatever was
// journaled since.
func (p *program) showStart(sess *service.Session, v view) error {
	errFirst := errors.New("first event")
	err := sess.Events(1, func(e event.Event) error {
		if err := v.show(e); err != nil {
			return err
		}
		return errFirst
	})
	if errors.Is(err, errFirst) {
		return nil
	}
	return err
}

// ask asks the person at the terminal about a call.
func (p *program) ask(ctx context.Context, sess *service.Session, a event.PermissionAsked) {
	reply := permission.ReplyReject
	fmt.Fprintf(p.stderr, "\r\x1b[K%s %s? [y]es, for the [s]ession, [n]o: ", visible(a.Tool), visible(a.Subject))
	line, err := p.readLine(ctx)
	if err == nil {
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			reply = permission.ReplyOnce
		case "s", "session":
			reply = permission.ReplySession
		}
	}
	sess.Resolve(a.ID, reply)
}
