// Command atoll is an offline coding assistant: a language model runs inside
// the process, every tool it calls runs as a WebAssembly module that sees only
// what it was granted, and sessions are kept on disk.
//
// This package reads arguments and environment, hands values to core/app, and
// shows the event stream of a turn as text or JSON. One file holds one command.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"atoll/core/app"
)

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}

// run is the whole program; its result is the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	ctx, sig := watchSignals(context.Background())
	defer sig.stop()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := &program{
		stdin:     &inlet{ctx: ctx, r: stdin},
		stdout:    &outlet{w: stdout, stop: stop},
		stderr:    stderr,
		stdinTTY:  isTerminal(stdin),
		stdoutTTY: isTerminal(stdout),
		stderrTTY: isTerminal(stderr),
		environ:   environ,
		signals:   sig,
	}
	if p.stdoutTTY {
		p.screen = &visibleWriter{w: p.stdout}
	} else {
		p.screen = p.stdout
	}
	err := p.main(ctx, args)
	code := exitCode(ctx, err)
	var quiet *errQuiet
	if err != nil && !errors.As(err, &quiet) && code != exitPipe {
		if code == exitInterrupted || code == exitTerminated {
			err = context.Cause(ctx)
		}
		p.complain(err)
	}
	return code
}

// program is what the commands have in common: the outside world as values.
type program struct {
	stdin  io.Reader
	stdout io.Writer // raw; a reader that goes away stops the program
	screen io.Writer // stdout for text of models, tools and files: made visible on a terminal
	stderr io.Writer

	stdinTTY, stdoutTTY, stderrTTY bool

	environ []string
	signals *signals

	keysOnce sync.Once
	keys     *keyboard // set by keysOnce
}

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// complain writes an error as one line.
func (p *program) complain(err error) {
	fmt.Fprintf(p.stderr, "atoll: %s\n", visible(err.Error()))
}

// note writes a line about what is going on.
func (p *program) note(format string, args ...any) {
	fmt.Fprintf(p.stderr, "%s\n", visible(fmt.Sprintf(format, args...)))
}

// getenv returns a variable; unset and empty are the same.
func (p *program) getenv(name string) string {
	value := ""
	for _, kv := range p.environ {
		if k, v, ok := strings.Cut(kv, "="); ok && (k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name)) {
			value = v
		}
	}
	return value
}

// color reports whether a stream may be coloured. See https://no-color.org.
func (p *program) color(tty bool) bool {
	return tty && p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
}

// dirs finds the folders that atoll keeps. ATOLL_CACHE moves what may be deleted
// at any time.
func (p *program) dirs() (app.Directories, error) {
	home := p.getenv("HOME")
	if runtime.GOOS == "windows" {
		home = p.getenv("USERPROFILE")
	}
	d, err := app.Dirs(app.Env{
		Home: home, AtollHome: p.getenv("ATOLL_HOME"), AtollModels: p.getenv("ATOLL_MODELS"),
		XDGDataHome: p.getenv("XDG_DATA_HOME"), XDGCacheHome: p.getenv("XDG_CACHE_HOME"), XDGConfigHome: p.getenv("XDG_CONFIG_HOME"),
		LocalAppData: p.getenv("LOCALAPPDATA"),
	})
	if err != nil {
		return d, withCode(exitUsage, err)
	}
	if cache := p.getenv("ATOLL_CACHE"); cache != "" {
		d.Cache = cache
	}
	for _, dir := range []*string{&d.Models, &d.Cache} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return d, err
		}
	}
	return d, nil
}

// main parses the arguments and runs the command.
func (p *program) main(ctx context.Context, args []string) error {
	app := p.app()
	arranged, err := arrange(app, args[1:])
	if err != nil {
		return err
	}
	return app.RunContext(ctx, arranged)
}

// app is the tree of commands.
func (p *program) app() *cli.App {
	usageError := func(_ *cli.Context, err error, _ bool) error {
		return usagef("%s", strings.ReplaceAll(err.Error(), "flag provided but not defined", "no such flag"))
	}
	app := &cli.App{
		Name:  "atoll",
		Usage: "an offline coding assistant",
		UsageText: "atoll -p PROMPT [flags]             do one prompt\n" +
			"atoll [flags]                       on a terminal: one prompt after the other\n" +
			"atoll COMMAND [flags] [arguments]   atoll COMMAND --help tells about one",
		Description:               rootDescription,
		Flags:                     runFlags(),
		Action:                    p.root,
		HideVersion:               true,
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		Writer:                    p.stdout,
		ErrWriter:                 p.stderr,
		ExitErrHandler:            func(*cli.Context, error) {}, // run decides
		OnUsageError:              usageError,
		Commands: []*cli.Command{
			p.runCommand(),
			p.sessionCommand(),
			p.modelCommand(),
			p.toolCommand(),
			p.benchCommand(),
			p.doctorCommand(),
			p.versionCommand(),
			p.completionCommand(),
		},
	}
	var each func(path string, cs []*cli.Command)
	each = func(path string, cs []*cli.Command) {
		for _, c := range cs {
			c.OnUsageError, c.HideHelpCommand, c.UsageText = usageError, true, usageLine(path, c)
			each(path+" "+c.Name, c.Subcommands)
		}
	}
	each(app.Name, app.Commands)
	return app
}

const rootDescription = `Without -m the default model is used; "atoll model pull" fetches it.
The answer goes to standard output, everything else to standard error.
Standard input is read only when the prompt is "-" (-p -).
On a terminal atoll asks once for each folder whether it may change files there;
--mode says it without being asked. Elsewhere nothing is changed without --mode.

Examples:
   atoll -p "Where is the retry delay set?"
   atoll -p "Make the retry delay 2 seconds" --mode workspace-write
   atoll -c -p "Where is it used?"
   atoll -p - --output-format json < prompt.txt

Exit codes: 0 success, 1 failure, 2 usage, 3 a permission was needed and nobody
could be asked, 4 a limit was reached, 5 sandbox unavailable, 6 model could not
be loaded, 130 interrupted, 141 the reader of standard output went away, 143
terminated.`

// arguments checks the number of arguments of a command; names are for messages.
func arguments(c *cli.Context, least, most int, names string) error {
	n := c.Args().Len()
	if n >= least && (most < 0 || n <= most) {
		return nil
	}
	if names == "" {
		return usagef("%s takes no arguments, got %q", c.Command.HelpName, c.Args().First())
	}
	return usagef("usage: %s %s", c.Command.HelpName, names)
}
