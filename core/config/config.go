// Package config reads settings files: JSON with comments, trailing commas and a byte order mark. A file is honoured as a whole
// or refused with the place of the fault; nothing is ever replaced by a default. The result is plain data.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"atoll/core/spelling"
)

// MaxSize bounds a settings file in bytes.
const MaxSize = 1 << 20

// Settings are what a file may set. A zero field is not set.
type Settings struct {
	Model       string
	Mode        string
	Ctx         int // tokens
	Threads     int
	Permissions []Rule
}

// Rule is one entry of "permissions", see permission.Rule. Place tells where it stands.
type Rule struct {
	Tool, Path, Command, Action string
	Place                       string
}

// Load reads a file. A file that does not exist gives zero settings.
func Load(path string) (Settings, error) {
	// Looked at before it is opened: opening a FIFO would wait for a writer.
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Settings{}, fmt.Errorf("read settings: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return Settings{}, fmt.Errorf("read settings: %w", err)
	}
	if len(b) > MaxSize {
		return Settings{}, fmt.Errorf("read settings: %s is larger than %d bytes", path, MaxSize)
	}
	return Parse(path, b)
}

// Parse reads the content of a file. What is wrong with it is an *Error.
func Parse(file string, b []byte) (Settings, error) {
	v, p, err := parse(file, b)
	if err != nil {
		return Settings{}, err
	}
	var s Settings
	err = p.fields(v, "the settings", map[string]func(value) error{
		"model":   p.text(&s.Model),
		"mode":    p.text(&s.Mode),
		"ctx":     p.count(&s.Ctx),
		"threads": p.count(&s.Threads),
		"permissions": func(v value) error {
			if v.kind != isArray {
				return p.wrong(v, "permissions", isArray)
			}
			for _, item := range v.items {
				var r Rule
				if err := p.fields(item, "a permission", map[string]func(value) error{
					"tool":    p.text(&r.Tool),
					"path":    p.text(&r.Path),
					"command": p.text(&r.Command),
					"action":  p.text(&r.Action),
				}); err != nil {
					return err
				}
				r.Place = strings.TrimSuffix(p.errorAt(item.at, "").Error(), ": ")
				s.Permissions = append(s.Permissions, r)
			}
			return nil
		},
	})
	if err != nil {
		return Settings{}, err
	}
	return s, nil
}

// fields hands each member of an object to its function. A key without one is an error.
func (p *parser) fields(v value, what string, known map[string]func(value) error) error {
	if v.kind != isObject {
		return p.errorAt(v.at, "%s must be an object, not %s", what, v.kind)
	}
	for _, m := range v.members {
		set, ok := known[m.key]
		if !ok {
			return p.errorAt(m.at, "unknown key %q%s", m.key, suggest(m.key, known))
		}
		if err := set(m.value); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) wrong(v value, key string, want kind) error {
	return p.errorAt(v.at, "%s must be %s, not %s", key, want, v.kind)
}

func (p *parser) text(to *string) func(value) error {
	return func(v value) error {
		if v.kind != isString {
			return p.wrong(v, "this", isString)
		}
		*to = v.text
		return nil
	}
}

func (p *parser) count(to *int) func(value) error {
	return func(v value) error {
		if v.kind != isNumber {
			return p.wrong(v, "this", isNumber)
		}
		n, err := strconv.Atoi(v.text)
		if err != nil || n < 1 || n > 1<<30 {
			return p.errorAt(v.at, "%s is not a whole number from 1 on", v.text)
		}
		*to = n
		return nil
	}
}

// suggest names the known key that a wrong one may stand for, if there is one.
func suggest(key string, known map[string]func(value) error) string {
	if best := spelling.Closest(key, slices.Collect(maps.Keys(known))); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}
