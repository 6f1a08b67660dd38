package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"atoll/core/spelling"
)

// arrange rewrites an argument list so that urfave/cli reads all of it: the
// library stops looking for flags at the first argument that is not one, and
// would take `tool run NAME --mode plan` for a call without a mode. The result
// is the command's path, its flags as --name=value, "--", and the arguments.
//
// Flags may stand anywhere; those before the command's name belong to the
// command. A flag that the command does not have, a flag without its value and
// a command that does not exist are usage errors.
func arrange(app *cli.App, args []string) ([]string, error) {
	a := arranger{root: app.Flags, flags: app.Flags, commands: app.Commands}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			a.positional = append(a.positional, args[i+1:]...)
			i = len(args)
		case len(arg) > 1 && arg[0] == '-' && !a.isNumber(arg):
			used, err := a.flag(arg, args[i+1:])
			if err != nil {
				return nil, err
			}
			i += used
		default:
			a.word(arg)
		}
	}
	return a.result()
}

type arranger struct {
	root     []cli.Flag     // flags of the program itself
	flags    []cli.Flag     // flags of the command found so far
	commands []*cli.Command // commands below it
	command  *cli.Command   // nil: the program itself

	path       []string
	given      []givenFlag
	positional []string
	help       bool
	version    bool
}

// givenFlag is a flag as the user wrote it.
type givenFlag struct {
	written  string // with its dashes, for messages
	name     string
	value    string
	hasValue bool
}

// isNumber reports whether arg is a negative number where an argument is
// expected: no flag of ours is a digit.
func (a *arranger) isNumber(arg string) bool {
	return strings.Trim(arg[1:], "0123456789") == ""
}

func (a *arranger) flag(arg string, rest []string) (used int, err error) {
	body := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	name, value, hasValue := strings.Cut(body, "=")
	switch name {
	case "help", "h":
		a.help = true
		return 0, nil
	case "version":
		a.version = true
		return 0, nil
	}
	written := strings.TrimSuffix(arg, "="+value)
	f := lookupFlag(a.flags, name)
	if f == nil {
		f = lookupFlag(a.root, name)
	}
	if f == nil {
		return 0, a.unknown(written)
	}
	if takesValue(f) && !hasValue {
		if len(rest) == 0 || (strings.HasPrefix(rest[0], "-") && a.known(rest[0])) {
			return 0, usagef("flag %s needs a value", written)
		}
		value, hasValue, used = rest[0], true, 1
	}
	a.given = append(a.given, givenFlag{written, name, value, hasValue})
	return used, nil
}

// known reports whether arg is written like a flag that exists here.
func (a *arranger) known(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return arg != "-" && (lookupFlag(a.flags, name) != nil || name == "help" || name == "h")
}

func (a *arranger) word(arg string) {
	if len(a.positional) == 0 {
		if arg == "help" && len(a.commands) > 0 {
			a.help = true
			return
		}
		for _, c := range a.commands {
			if c.HasName(arg) {
				a.command, a.flags, a.commands = c, c.Flags, c.Subcommands
				a.path = append(a.path, c.Name)
				return
			}
		}
	}
	a.positional = append(a.positional, arg)
}

func (a *arranger) name() string {
	return strings.Join(append([]string{"atoll"}, a.path...), " ")
}

func (a *arranger) unknown(written string) error {
	return usagef("%s has no flag %s; see %s --help", a.name(), written, a.name())
}

func (a *arranger) result() ([]string, error) {
	out := append([]string{"atoll"}, a.path...)
	if !a.help && a.version && a.command == nil {
		return []string{"atoll", "version"}, nil
	}
	if !a.help && a.version {
		return nil, a.unknown("--version")
	}
	if len(a.commands) > 0 && len(a.positional) > 0 {
		text := fmt.Sprintf("%s has no command %q", a.name(), a.positional[0])
		if s := closest(a.commands, a.positional[0]); s != "" {
			text += fmt.Sprintf("; did you mean %q?", s)
		} else if a.command == nil {
			text += `; a prompt is given with -p "..."`
		}
		return nil, usagef("%s", text)
	}
	if a.help {
		return append(out, "--help"), nil
	}
	if a.command != nil && len(a.commands) > 0 {
		return nil, usagef("%s needs a command; see %s --help", a.name(), a.name())
	}
	for _, g := range a.given {
		f := lookupFlag(a.flags, g.name)
		if f == nil {
			return nil, a.unknown(g.written)
		}
		if !g.hasValue {
			out = append(out, "--"+g.name)
			continue
		}
		out = append(out, "--"+g.name+"="+g.value)
	}
	out = append(out, "--")
	return append(out, a.positional...), nil
}

func lookupFlag(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// closest returns the command that a word may stand for, "" if there is none.
func closest(commands []*cli.Command, word string) string {
	names := make([]string, len(commands))
	for i, c := range commands {
		names[i] = c.Name
	}
	return spelling.Closest(word, names)
}
