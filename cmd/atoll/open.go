package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"atoll/core/app"
	"atoll/core/modelstore"
	"atoll/core/permission"
	"atoll/core/service"
)

// options are what flags and environment say, in that order. What neither says
// is for the settings file and the defaults.
func (p *program) options(c *cli.Context) (app.Options, error) {
	d, err := p.dirs()
	if err != nil {
		return app.Options{}, err
	}
	o := app.Options{
		Workspace: c.String("C"),
		DataDir:   d.Data, CacheDir: d.Cache, ConfigDir: d.Config, ModelsDir: d.Models,
		Model: c.String("model"), Mode: c.String("mode"),
		Ctx: c.Int("ctx"), Threads: c.Int("threads"), MaxSteps: c.Int("max-steps"),
		CPU:         p.getenv("ATOLL_CPU"),
		Interactive: p.canAsk(),
	}
	if c.IsSet("C") && o.Workspace == "" {
		return o, usagef("-C: the directory is empty")
	}
	for name, value := range map[string]*string{"ATOLL_MODEL": &o.Model, "ATOLL_MODE": &o.Mode} {
		if *value == "" {
			*value = p.getenv(name)
		}
	}
	for name, value := range map[string]*int{"ATOLL_CTX": &o.Ctx, "ATOLL_THREADS": &o.Threads} {
		if text := p.getenv(name); *value == 0 && text != "" {
			if *value, err = strconv.Atoi(text); err != nil {
				return o, usagef("%s: %q is not a number", name, text)
			}
		}
	}
	return o, nil
}

// open returns the service of the workspace, for commands that start no session.
func (p *program) open(c *cli.Context) (*service.Service, error) {
	o, err := p.options(c)
	if err != nil {
		return nil, err
	}
	return app.Open(o)
}

// openToRun returns the service of the workspace for a prompt.
func (p *program) openToRun(c *cli.Context) (*service.Service, error) {
	o, err := p.options(c)
	if err != nil {
		return nil, err
	}
	loading := 0
	o.OnLoad = func(done, total int64) {
		if percent := int(done * 100 / max(total, 1)); p.stderrTTY && percent > loading {
			loading = percent
			fmt.Fprintf(p.stderr, "\rloading the model, %d %%\x1b[K", percent)
			if done == total {
				fmt.Fprint(p.stderr, "\r\x1b[K")
			}
		}
	}
	svc, err := app.Open(o)
	if err != nil || o.Mode != "" {
		return svc, err
	}
	// The service knows the workspace's real path, under which the answer is kept.
	mode, err := p.askedMode(c, svc.Workspace())
	if err != nil || mode == "" {
		if err != nil {
			svc.Close()
			svc = nil
		}
		return svc, err
	}
	if err := svc.Close(); err != nil {
		return nil, err
	}
	o.Mode = mode
	return app.Open(o)
}

// session starts or opens the session that the flags mean.
func (p *program) session(c *cli.Context, svc *service.Service) (*service.Session, error) {
	ctx := c.Context
	if c.Bool("continue") && c.IsSet("resume") {
		return nil, usagef("-c and -r: one session at a time")
	}
	if c.String("mode") == string(permission.WorkspaceWrite) {
		if err := canWrite(svc.Workspace()); err != nil {
			return nil, err
		}
	}
	get := func() (*service.Session, error) {
		switch {
		case c.IsSet("resume"):
			return svc.Resume(ctx, c.String("resume"))
		case c.Bool("continue"):
			return svc.Continue(ctx)
		}
		return svc.Start(ctx)
	}
	sess, err := get()
	var missing *modelstore.MissingError
	if errors.As(err, &missing) {
		if err := p.offerModel(ctx, err); err != nil {
			return nil, err
		}
		sess, err = get()
	}
	if err != nil {
		return nil, err
	}
	if sess.Mode() == permission.WorkspaceWrite {
		if err := canWrite(svc.Workspace()); err != nil {
			return nil, errors.Join(err, sess.Close())
		}
	}
	return sess, nil
}

// canWrite refuses a mode that could not do what it says.
func canWrite(workspace string) error {
	if err := writable(workspace); err != nil {
		return usagef("workspace %s cannot be written: %w", workspace, err)
	}
	return nil
}
