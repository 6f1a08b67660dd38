package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"atoll/core/app"
	"atoll/core/atomicfile"
	"atoll/core/config"
	"atoll/core/permission"
)

// askedMode returns the mode of a new session on a terminal when nothing else
// says it: the user is asked once for each workspace, and app.ModesFile keeps the
// answers, a JSON object from path to mode. Elsewhere it is empty, which means
// read-only.
func (p *program) askedMode(c *cli.Context, workspace string) (string, error) {
	if !p.canAsk() || c.IsSet("mode") || p.getenv("ATOLL_MODE") != "" || c.IsSet("resume") || c.Bool("continue") || c.String("output-format") != formatText {
		return "", nil
	}
	d, err := p.dirs()
	if err != nil {
		return "", err
	}
	if s, err := config.Load(filepath.Join(d.Config, "config.jsonc")); err != nil || s.Mode != "" {
		return "", err
	}
	path := filepath.Join(d.Data, app.ModesFile)
	modes, err := readModes(path)
	if err != nil {
		return "", err
	}
	if m, ok := modes[workspace]; ok {
		return m, nil
	}
	yes, err := p.confirm(c.Context, fmt.Sprintf("May atoll change files below %s? (remembered; --mode says otherwise)", workspace), false)
	if err != nil {
		if c.Context.Err() != nil {
			return "", context.Cause(c.Context)
		}
		return "", nil // the keyboard is closed: read-only, not remembered
	}
	mode := permission.ReadOnly
	if yes {
		mode = permission.WorkspaceWrite
	}
	modes[workspace] = string(mode)
	return string(mode), writeModes(path, modes)
}

// readModes reads the answers. A file that is not ours to understand is an
// error: guessing could widen a mode.
func readModes(path string) (map[string]string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read remembered modes: %w", err)
	}
	modes := map[string]string{}
	if err := json.Unmarshal(b, &modes); err != nil {
		return nil, usagef("%s: %w; delete it to be asked again", path, err)
	}
	for ws, m := range modes {
		if _, err := permission.ParseMode(m); err != nil {
			return nil, usagef("%s: %s: %w", path, ws, err)
		}
	}
	return modes, nil
}

// writeModes replaces the file in one step.
func writeModes(path string, modes map[string]string) error {
	b, err := json.MarshalIndent(modes, "", "  ")
	if err != nil {
		return fmt.Errorf("remember mode: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("remember mode: %w", err)
	}
	if err := atomicfile.Write(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("remember mode: %w", err)
	}
	return nil
}
