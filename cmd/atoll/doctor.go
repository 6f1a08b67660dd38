package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"atoll/core/app"
	"atoll/core/inspect"
	"atoll/core/modelstore"
)

func (p *program) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:        "doctor",
		Usage:       "tell what this machine can do and what is missing",
		Description: "Exit code 1 if something that atoll needs does not work.",
		Flags:       []cli.Flag{workspaceFlag(), jsonFlag()},
		Action:      p.doctor,
	}
}

// finding is one line of the doctor.
type finding struct {
	Name string `json:"name"`
	// State is "ok", "note" (works, with less) or "bad".
	State string `json:"state"`
	Text  string `json:"text"`
}

// diagnosis is what the doctor found.
type diagnosis struct {
	OK       bool              `json:"ok"`
	Version  versionInfo       `json:"version"`
	Machine  inspect.Machine   `json:"machine"`
	Dirs     map[string]string `json:"dirs"`
	Findings []finding         `json:"findings"`
}

func (d *diagnosis) add(name, state, format string, args ...any) {
	d.Findings = append(d.Findings, finding{name, state, fmt.Sprintf(format, args...)})
	if state == "bad" {
		d.OK = false
	}
}

func (p *program) doctor(c *cli.Context) error {
	if err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	o, err := p.options(c)
	if err != nil {
		return err
	}
	dirs, err := p.dirs()
	if err != nil {
		return err
	}
	d := &diagnosis{OK: true, Version: readVersion(), Dirs: map[string]string{
		"data": dirs.Data, "cache": dirs.Cache, "config": dirs.Config, "models": dirs.Models,
	}}
	p.examineMachine(d)
	examineDirs(d, dirs)
	examineModels(d, dirs.Models)
	if out, err := app.CheckSandbox(c.Context, o); err != nil {
		if c.Context.Err() != nil {
			return err
		}
		d.add("sandbox", "bad", "tools cannot run: %v", err)
	} else {
		d.add("sandbox", "ok", "the built-in tools run, confined to %s", quoteDir(o.Workspace))
		if out.CacheError != nil {
			d.add("compiled tools", "note", "%v", out.CacheError)
		}
		d.add("modules of others", "note", "there is one wall, not two: they run only with --one-wall")
	}
	if c.Bool("json") {
		err = p.writeJSON(d)
	} else {
		err = p.showDiagnosis(d)
	}
	if err == nil && !d.OK {
		err = &errQuiet{exitFailure}
	}
	return err
}

func quoteDir(dir string) string {
	if dir == "" {
		return "the current folder"
	}
	return dir
}

func (p *program) examineMachine(d *diagnosis) {
	m, err := inspect.Probe(inspect.Options{CPU: p.getenv("ATOLL_CPU")})
	d.Machine = m
	switch {
	case err != nil:
		d.add("processor", "bad", "%s: %v", m.CPU, err)
	case m.Tier == "generic":
		d.add("processor", "note", "%s: plain Go, %d threads; slow (%s)", m.CPU, m.Threads, m.Reason)
	default:
		d.add("processor", "ok", "%s: %s, %d threads (%s)", m.CPU, m.Tier, m.Threads, m.Reason)
	}
	if memory := totalMemory(); memory > 0 {
		d.add("memory", "ok", "%s", modelstore.FormatBytes(memory))
	}
}

// examineDirs writes a file into each folder that must be writable.
func examineDirs(d *diagnosis, dirs app.Directories) {
	for _, dir := range []struct{ name, path, state, cost string }{
		{"sessions", dirs.Data, "bad", "no session can be kept"},
		{"cache", dirs.Cache, "note", "tools are compiled anew each time"},
		{"models", dirs.Models, "note", "no model can be fetched"},
	} {
		if err := tryWrite(dir.path); err != nil {
			d.add(dir.name, dir.state, "%v: %s", err, dir.cost)
		} else {
			d.add(dir.name, "ok", "%s", dir.path)
		}
	}
	config := filepath.Join(dirs.Config, "config.jsonc")
	if _, err := os.Lstat(config); errors.Is(err, os.ErrNotExist) {
		d.add("settings", "ok", "%s (not there: defaults)", config)
	} else if err := app.CheckSettings(dirs.Config); err != nil {
		d.add("settings", "bad", "%v", err)
	} else {
		d.add("settings", "ok", "%s", config)
	}
}

func tryWrite(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close())
}

func examineModels(d *diagnosis, dir string) {
	store := modelstore.New(modelstore.Options{Dir: dir})
	list, err := store.List()
	if err != nil {
		d.add("model files", "bad", "%v", err)
		return
	}
	var there []string
	for _, e := range list {
		if e.Present && e.Problem == "" {
			there = append(there, e.Name)
		} else if e.Problem != "" {
			d.add("model files", "note", "%s %s; fetch it again with: atoll model pull %s", e.Name, e.Problem, e.Name)
		}
	}
	if len(there) == 0 {
		d.add("model files", "note", "none; fetch the default one with: atoll model pull %s", store.Default())
	} else {
		d.add("model files", "ok", "%s", strings.Join(there, ", "))
	}
	if _, err := exec.LookPath("python3"); err != nil {
		d.add("fetching", "note", "python3 is not there: models come from the hub only")
	}
}

func (p *program) showDiagnosis(d *diagnosis) error {
	if _, err := fmt.Fprintln(p.screen, d.Version); err != nil {
		return err
	}
	mark := map[string]string{"ok": "ok  ", "note": "note", "bad": "BAD "}
	for _, f := range d.Findings {
		if _, err := fmt.Fprintf(p.screen, "%s  %-18s %s\n", mark[f.State], f.Name, visible(f.Text)); err != nil {
			return err
		}
	}
	return nil
}

// totalMemory is the machine's memory in bytes, 0 where that cannot be told.
func totalMemory() int64 {
	if runtime.GOOS != "linux" {
		return 0
	}
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib int64
	if _, err := fmt.Sscanf(string(b), "MemTotal: %d kB", &kib); err != nil {
		return 0
	}
	return kib << 10
}
