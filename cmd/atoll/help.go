package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// The library asks for a flag's line through a variable.
func init() { cli.FlagStringer = flagLine }

// flagLine is a flag's line of a help page: its names, the short one first, what
// it takes, and what it is for. A default that turns nothing on is left out.
func flagLine(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	usage, value := d.GetUsage(), ""
	if before, rest, ok := strings.Cut(usage, "`"); ok {
		if quoted, after, ok := strings.Cut(rest, "`"); ok {
			usage, value = before+quoted+after, " "+quoted
		}
	}
	if !d.TakesValue() {
		value = ""
	} else if value == "" {
		value = " VALUE"
	}
	short, long := "", ""
	for _, n := range f.Names() {
		if len(n) == 1 {
			short += "-" + n + ", "
		} else {
			long += "--" + n + ", "
		}
	}
	switch text := strings.Trim(d.GetDefaultText(), `"`); text {
	case "", "0", "0s", "false":
	default:
		usage += fmt.Sprintf(" (default: %s)", text)
	}
	return strings.TrimSuffix(short+long, ", ") + value + "\t" + usage
}

// usageLine is how a command is called, given the names before its own.
func usageLine(path string, c *cli.Command) string {
	line := path + " " + c.Name
	if len(c.Subcommands) > 0 {
		return line + " COMMAND [flags] [arguments]"
	}
	if len(c.Flags) > 0 {
		line += " [flags]"
	}
	if c.ArgsUsage != "" {
		line += " " + c.ArgsUsage
	}
	return line
}
