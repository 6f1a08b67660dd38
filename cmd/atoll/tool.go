package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"atoll/core/app"
)

func (p *program) toolCommand() *cli.Command {
	return &cli.Command{
		Name:  "tool",
		Usage: "list and run the sandboxed tools",
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list the tools", Flags: []cli.Flag{jsonFlag()}, Action: p.toolList},
			{Name: "schema", Usage: "print the JSON Schema of a tool's arguments", ArgsUsage: "NAME", Action: p.toolSchema},
			{
				Name: "run", Usage: "run one tool in the sandbox", ArgsUsage: "(NAME | --module X.wasm)",
				Description: "The result goes to standard output. Exit codes: 0 the tool succeeded, 1 it failed, 2 usage or manifest,\n" +
					"5 the sandbox cannot be had or the module asks for what was not granted.\n\n" +
					"Examples:\n   atoll tool run grep --args '{\"pattern\": \"TODO\"}'\n" +
					"   atoll tool run edit --mode workspace-write --args '{\"path\": \"a.go\", \"old\": \"1\", \"new\": \"2\"}'",
				Flags: []cli.Flag{
					workspaceFlag(),
					&cli.StringFlag{Name: "mode", Usage: "`MODE` is read-only or workspace-write", Value: "read-only"},
					&cli.StringFlag{Name: "args", Usage: "the arguments, a `JSON` object; - reads them from standard input", Value: "{}"},
					&cli.StringFlag{Name: "module", Usage: "run the module in `FILE`, which did not come with atoll"},
					&cli.StringFlag{Name: "manifest", Usage: "its manifest in `FILE`; without it the module's own section, or NAME.json beside it"},
					&cli.BoolFlag{Name: "one-wall", Usage: "accept that such a module runs in this process"},
					&cli.StringSliceFlag{Name: "mount", Usage: "a further folder, `ro:DIR` (or rw:DIR); may be repeated"},
					&cli.StringSliceFlag{Name: "grant", Usage: "a `CAPABILITY` that the manifest may ask for: clock, random, env:NAME; may be repeated"},
					&cli.DurationFlag{Name: "timeout", Usage: "end the call after `TIME`, such as 2s"},
					&cli.StringFlag{Name: "memory", Usage: "limit of memory, such as `256M`"},
					&cli.Int64Flag{Name: "fuel", Usage: "limit of steps; not supported yet", Hidden: true},
					&cli.StringFlag{Name: "audit", Usage: "write what was opened and refused to `FILE` as JSON"},
					jsonFlag(),
				},
				Action: p.toolRun,
			},
		},
	}
}

func (p *program) toolList(c *cli.Context) error {
	if err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	specs, err := app.ToolSpecs()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.writeJSON(specs)
	}
	w := tabwriter.NewWriter(p.screen, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tACCESS\tDESCRIPTION")
	for _, s := range specs {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Access, s.Description)
	}
	return w.Flush()
}

func (p *program) toolSchema(c *cli.Context) error {
	if err := arguments(c, 1, 1, "NAME"); err != nil {
		return err
	}
	specs, err := app.ToolSpecs()
	if err != nil {
		return err
	}
	for _, s := range specs {
		if s.Name == c.Args().First() {
			return p.writeJSON(s.Parameters)
		}
	}
	return usagef("no tool %q; see atoll tool list", c.Args().First())
}

func (p *program) toolRun(c *cli.Context) error {
	call, err := p.toolCall(c)
	if err != nil {
		return err
	}
	o, err := p.options(c)
	if err != nil {
		return err
	}
	out, err := app.RunTool(c.Context, o, call)
	if err != nil {
		return err
	}
	if path := c.String("audit"); path != "" {
		b, err := json.MarshalIndent(out, "", "  ")
		if err == nil {
			err = os.WriteFile(path, append(b, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("write audit: %w", err)
		}
	}
	if err := p.showOutcome(c, out); err != nil {
		return err
	}
	if out.OK() {
		return nil
	}
	return &errQuiet{exitFailure}
}

// toolCall reads the flags of one call.
func (p *program) toolCall(c *cli.Context) (app.ToolCommand, error) {
	call := app.ToolCommand{
		Name: c.Args().First(), Module: c.String("module"), Manifest: c.String("manifest"), OneWall: c.Bool("one-wall"),
		Mounts: c.StringSlice("mount"), Grants: c.StringSlice("grant"), Environ: p.environ, Wall: c.Duration("timeout"),
	}
	if err := arguments(c, 0, 1, "(NAME | --module X.wasm)"); err != nil {
		return call, err
	}
	switch {
	case call.Name == "" && call.Module == "":
		return call, usagef("tool run: which tool? give a NAME of atoll tool list, or --module FILE")
	case call.Name != "" && (call.Module != "" || call.Manifest != ""):
		return call, usagef("tool run: a NAME or --module, not both")
	case c.IsSet("timeout") && (call.Wall <= 0 || call.Wall > 24*time.Hour):
		return call, usagef("tool run: --timeout must be more than 0 and at most 24h")
	case c.IsSet("fuel"):
		return call, usagef("tool run: --fuel is not supported yet; use --timeout")
	}
	var err error
	if text := c.String("memory"); text != "" {
		if call.Memory, err = parseSize(text); err != nil {
			return call, usagef("tool run: --memory: %w", err)
		}
	}
	args := c.String("args")
	if args == "-" {
		b, err := readWhole(p.stdin, "arguments", maxPrompt)
		if err != nil {
			return call, err
		}
		args = string(b)
	}
	if args = strings.TrimSpace(args); !json.Valid([]byte(args)) || args[0] != '{' {
		return call, usagef("tool run: --args %s: not a JSON object", shorten(args, 60))
	}
	call.Args = []byte(args)
	return call, nil
}

func (p *program) showOutcome(c *cli.Context, out *app.ToolOutcome) error {
	if c.Bool("json") {
		return p.writeJSON(struct {
			*app.ToolOutcome
			OK     bool   `json:"ok"`
			Stdout string `json:"stdout"`
			Stderr string `json:"stderr"`
			Diff   string `json:"diff"`
		}{out, out.OK(), string(out.Stdout), string(out.Stderr), out.Diff})
	}
	if _, err := p.screen.Write(out.Stdout); err != nil {
		return err
	}
	if len(out.Stderr) > 0 {
		w := &visibleWriter{w: p.stderr}
		w.Write(out.Stderr)
		w.Flush()
		if out.Stderr[len(out.Stderr)-1] != '\n' {
			fmt.Fprintln(p.stderr)
		}
	}
	if out.Truncated {
		p.note("atoll: output was cut at its limit")
	}
	switch {
	case out.Error != "":
		p.note("atoll: %s", out.Error)
	case out.ExitCode != 0:
		text := fmt.Sprintf("the tool ended with exit code %d", out.ExitCode)
		if out.Limit != "" {
			text += ", after it met the limit of " + out.Limit
		}
		p.note("atoll: %s", text)
	}
	return nil
}

// parseSize reads a number of bytes with an optional unit K, M or G (powers of
// 1024).
func parseSize(s string) (int64, error) {
	number, shift := s, 0
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'k', 'K':
			number, shift = s[:n-1], 10
		case 'm', 'M':
			number, shift = s[:n-1], 20
		case 'g', 'G':
			number, shift = s[:n-1], 30
		}
	}
	v, err := strconv.ParseInt(number, 10, 64)
	if err != nil || v <= 0 || v > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is not a size such as 256M", s)
	}
	return v << shift, nil
}
