package permission

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Action is what a rule says.
type Action string

// The actions, from the least to the most restrictive.
const (
	Allow Action = "allow"
	Ask   Action = "ask"
	Deny  Action = "deny"
)

// stricter returns the more restrictive of both.
func stricter(a, b Action) Action {
	rank := func(x Action) int {
		switch x {
		case Allow:
			return 0
		case Ask:
			return 1
		}
		return 2
	}
	if rank(a) >= rank(b) {
		return a
	}
	return b
}

// Rule is one line of the permissions in a configuration.
type Rule struct {
	// Tool is a name or glob; "edit" also covers "write".
	Tool string `json:"tool"`
	// Path is a glob below the workspace; empty matches every call.
	Path string `json:"path,omitempty"`
	// Command is compared with each simple command: word by word as globs, a last "*" takes all further words.
	Command string `json:"command,omitempty"`
	Action  Action `json:"action"`
}

// String returns the rule as it stands in a configuration.
func (r Rule) String() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic("BUG: rule does not encode: " + err.Error())
	}
	return string(b)
}

// Check reports what is wrong with a rule.
func (r Rule) Check() error {
	switch r.Action {
	case Allow, Ask, Deny:
	case "":
		return errors.New(`rule without "action"`)
	default:
		return fmt.Errorf("unknown action %q: allow, ask or deny", r.Action)
	}
	if r.Tool == "" {
		return errors.New(`rule without "tool"`)
	}
	if _, err := path.Match(r.Tool, ""); err != nil {
		return fmt.Errorf("tool %q: %w", r.Tool, err)
	}
	if !doublestar.ValidatePattern(r.Path) {
		return fmt.Errorf("path %q: syntax error in pattern", r.Path)
	}
	if strings.HasPrefix(r.Path, "/") || strings.HasPrefix(clean(r.Path), "..") {
		return fmt.Errorf("path %q: must be below the workspace", r.Path)
	}
	for _, w := range strings.Fields(r.Command) {
		if _, err := path.Match(w, ""); err != nil {
			return fmt.Errorf("command %q: %w", r.Command, err)
		}
	}
	if r.Path != "" && r.Command != "" {
		return errors.New(`rule with both "path" and "command"`)
	}
	return nil
}

func (r Rule) matchesTool(name string) bool {
	ok, err := path.Match(r.Tool, name)
	return err == nil && ok || r.Tool == "edit" && name == "write"
}

// matchesPath reports whether the rule is about p. Where the call may touch everything below p, a rule that restricts also
// matches if it could match anything there: a search over a folder must not read what a rule hides.
func (r Rule) matchesPath(p string, recursive bool) bool {
	if r.Path == "" {
		return true
	}
	pat := clean(r.Path)
	if c := clean(p); r.Action == Allow && (c == ".." || strings.HasPrefix(c, "../")) {
		return false // "**" means everything below the workspace
	}
	if ok, err := doublestar.Match(pat, clean(p)); err == nil && ok {
		return true
	}
	return recursive && r.Action != Allow && mayMatchBelow(pat, clean(p))
}

// mayMatchBelow reports whether pattern can match a path below dir. It errs on the side of yes.
func mayMatchBelow(pattern, dir string) bool {
	if dir == "." {
		return true
	}
	pats, dirs := strings.Split(pattern, "/"), strings.Split(dir, "/")
	for i, d := range dirs {
		if i >= len(pats) {
			return false
		}
		if strings.Contains(pats[i], "**") || strings.Contains(pats[i], "{") {
			return true
		}
		if ok, err := doublestar.Match(pats[i], d); err != nil || !ok {
			return err != nil
		}
	}
	return true
}

func (r Rule) matchesCommand(argv []string) bool {
	if r.Command == "" {
		return true
	}
	words := strings.Fields(r.Command)
	for i, w := range words {
		if w == "*" && i == len(words)-1 {
			return true
		}
		if i >= len(argv) {
			return false
		}
		if ok, err := path.Match(w, argv[i]); err != nil || !ok {
			return false
		}
	}
	return len(argv) == len(words)
}
