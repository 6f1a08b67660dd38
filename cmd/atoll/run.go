package main

import (
	"github.com/urfave/cli/v2"
)

// workspaceFlags are what every command that works in a workspace has.
func workspaceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "C", Usage: "work in `DIR` instead of the current directory"},
	}
}

// engineFlags choose and size a model.
func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Aliases: []string{"m"}, Usage: "a GGUF file, a name of `atoll model list`, or script:FILE"},
		&cli.IntFlag{Name: "threads", Aliases: []string{"t"}, Usage: "worker threads (0: as many as there are cores)"},
	}
}

func runFlags() []cli.Flag {
	return append(append([]cli.Flag{
		&cli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: "do `PROMPT` and exit; - reads it from standard input"},
		&cli.BoolFlag{Name: "continue", Aliases: []string{"c"}, Usage: "continue the last session of the workspace"},
		&cli.StringFlag{Name: "resume", Aliases: []string{"r"}, Usage: "continue the session `ID`"},
	}, workspaceFlags()...), append(engineFlags(),
		&cli.StringFlag{Name: "mode", Usage: "`read-only|workspace-write`; read-only if not given, or the session's"},
		&cli.StringFlag{Name: "output-format", Usage: "`text|json|stream-json`", Value: "text"},
		&cli.IntFlag{Name: "ctx", Usage: "context window in tokens (0: what the model was trained for, within reason)"},
		&cli.IntFlag{Name: "max-steps", Usage: "stop a turn after `N` model steps (0: the default)"},
	)...)
}

func (p *program) root(c *cli.Context) error {
	if !c.IsSet("prompt") {
		return usagef(`no prompt; give one with -p "...", or see atoll --help`)
	}
	return nil
}
