package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a shell's completion script",
		ArgsUsage:   "bash|zsh|fish",
		Description: "bash: source <(atoll completion bash)\nzsh:  atoll completion zsh > \"${fpath[1]}/_atoll\"\nfish: atoll completion fish | source",
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "bash|zsh|fish"); err != nil {
				return err
			}
			words := completions(p.app())
			var script string
			switch c.Args().First() {
			case "bash":
				script = bashCompletion(words)
			case "zsh":
				script = "#compdef atoll\nautoload -U +X bashcompinit && bashcompinit\n" + bashCompletion(words)
			case "fish":
				script = fishCompletion(words)
			default:
				return usagef("completion: no script for %q; there are bash, zsh and fish", c.Args().First())
			}
			_, err := fmt.Fprint(p.stdout, script)
			return err
		},
	}
}

// completion is what may follow one command.
type completion struct {
	path     string // "", "session", "session list", ...
	commands []string
	usages   []string // of commands, in order
	flags    []string // with their dashes
}

// completions lists the tree of commands; the scripts hold it as data, so that
// completing starts no process.
func completions(app *cli.App) []completion {
	var out []completion
	var walk func(path string, cs []*cli.Command, flags []cli.Flag)
	walk = func(path string, cs []*cli.Command, flags []cli.Flag) {
		w := completion{path: path}
		for _, f := range flags {
			for _, n := range f.Names() {
				if len(n) == 1 {
					w.flags = append(w.flags, "-"+n)
				} else {
					w.flags = append(w.flags, "--"+n)
				}
			}
		}
		for _, c := range cs {
			w.commands = append(w.commands, c.Name)
			w.usages = append(w.usages, c.Usage)
		}
		out = append(out, w)
		for _, c := range cs {
			walk(strings.TrimSpace(path+" "+c.Name), c.Subcommands, c.Flags)
		}
	}
	walk("", app.Commands, app.Flags)
	return out
}

func bashCompletion(words []completion) string {
	var b strings.Builder
	b.WriteString(`_atoll() {
	local cur=${COMP_WORDS[COMP_CWORD]} path= word words=
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case "$path $word" in
`)
	for _, w := range words {
		for _, c := range w.commands {
			fmt.Fprintf(&b, "\t\t\"%s %s\") path=\"%s\" ;;\n", w.path, c, strings.TrimSpace(w.path+" "+c))
		}
	}
	b.WriteString("\t\tesac\n\tdone\n\tcase \"$path\" in\n")
	for _, w := range words {
		fmt.Fprintf(&b, "\t\"%s\") words=\"%s\" ;;\n", w.path, strings.Join(append(w.commands, w.flags...), " "))
	}
	b.WriteString(`	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	if [[ ${#COMPREPLY[@]} -eq 0 ]]; then COMPREPLY=($(compgen -f -- "$cur")); fi
}
complete -o filenames -F _atoll atoll
`)
	return b.String()
}

func fishCompletion(words []completion) string {
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'" }
	var b strings.Builder
	for _, w := range words {
		condition := "__fish_use_subcommand"
		if w.path != "" {
			condition = "__fish_seen_subcommand_from " + strings.ReplaceAll(w.path, " ", "; and __fish_seen_subcommand_from ")
		}
		for i, c := range w.commands {
			fmt.Fprintf(&b, "complete -c atoll -n %s -a %s -d %s\n", quote(condition), c, quote(w.usages[i]))
		}
		for _, f := range w.flags {
			switch long := strings.TrimPrefix(f, "--"); {
			case long != f:
				fmt.Fprintf(&b, "complete -c atoll -n %s -l %s\n", quote(condition), long)
			default:
				fmt.Fprintf(&b, "complete -c atoll -n %s -s %s\n", quote(condition), strings.TrimPrefix(f, "-"))
			}
		}
	}
	return b.String()
}
