package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"atoll/core/event"
	"atoll/core/message"
)

func (p *program) sessionCommand() *cli.Command {
	return &cli.Command{
		Name:  "session",
		Usage: "list, show and delete sessions",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list the sessions of the workspace, the last used first",
				Flags: []cli.Flag{
					workspaceFlag(), jsonFlag(),
					&cli.BoolFlag{Name: "all", Usage: "the sessions of all workspaces"},
				},
				Action: p.sessionList,
			},
			{
				Name: "show", Usage: "show a session; without ID the last one", ArgsUsage: "[ID]",
				Flags: []cli.Flag{
					workspaceFlag(), jsonFlag(),
					&cli.BoolFlag{Name: "events", Usage: "print the journal, one event a line, as stream-json does"},
				},
				Action: p.sessionShow,
			},
			{
				Name: "delete", Usage: "delete a session", ArgsUsage: "ID",
				Flags:  []cli.Flag{workspaceFlag(), jsonFlag()},
				Action: p.sessionDelete,
			},
		},
	}
}

func (p *program) sessionList(c *cli.Context) error {
	if err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	svc, err := p.open(c)
	if err != nil {
		return err
	}
	defer svc.Close()
	list := svc.List
	if c.Bool("all") {
		list = svc.ListAll
	}
	metas, err := list()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return p.writeJSON(metas)
	}
	w := tabwriter.NewWriter(p.screen, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tUSED\tTURNS\tMODE\tSTOP\tTITLE")
	for _, m := range metas {
		state := string(m.Stop)
		switch {
		case m.Damaged != "":
			state = "damaged"
		case m.Open:
			state = "open"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", m.ID, m.Updated.Local().Format(time.DateTime), m.Turns, m.Mode, state, visible(shorten(m.Title, 80)))
	}
	return w.Flush()
}

func (p *program) sessionShow(c *cli.Context) error {
	if err := arguments(c, 0, 1, "[ID]"); err != nil {
		return err
	}
	if c.Bool("json") && c.Bool("events") {
		return usagef("session show: --json or --events, not both")
	}
	svc, err := p.open(c)
	if err != nil {
		return err
	}
	defer svc.Close()
	id := c.Args().First()
	if !c.Args().Present() {
		if id, err = svc.Last(); err != nil {
			return err
		}
	}
	if c.Bool("events") {
		return svc.Events(id, func(e event.Event) error {
			if err := c.Context.Err(); err != nil {
				return err
			}
			return p.writeJSON(e)
		})
	}
	st, err := svc.Show(id)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		if st.Messages == nil {
			st.Messages = []message.Message{}
		}
		return p.writeJSON(shownSession{
			ID: st.ID, Workspace: st.Workspace, Mode: st.Mode, Model: st.Model, Title: st.Title,
			Created: st.Created.UTC(), Updated: st.Updated.UTC(), Turns: st.Turn, Stop: string(st.Stop), Usage: st.Usage, Messages: st.Messages,
		})
	}
	fmt.Fprintf(p.screen, "session %s, %s, model %s, workspace %s\n", st.ID, st.Mode, visible(st.Model), visible(st.Workspace))
	for _, m := range st.Messages {
		if err := p.showMessage(m); err != nil {
			return err
		}
	}
	return nil
}

// shownSession is the JSON form of a session.
type shownSession struct {
	ID        string            `json:"id"`
	Workspace string            `json:"workspace"`
	Mode      string            `json:"mode"`
	Model     string            `json:"model"`
	Title     string            `json:"title"`
	Created   time.Time         `json:"created"`
	Updated   time.Time         `json:"updated"`
	Turns     int               `json:"turns"`
	Stop      string            `json:"stop"`
	Usage     message.Usage     `json:"usage"`
	Messages  []message.Message `json:"messages"`
}

func (p *program) showMessage(m message.Message) error {
	head := string(m.Role)
	if m.Aborted {
		head += " (cut off)"
	}
	_, err := fmt.Fprintf(p.screen, "\n%s:\n", head)
	for _, part := range m.Parts {
		if err != nil {
			return err
		}
		switch part := part.(type) {
		case message.Text:
			if part.Synthetic { // such as the workspace's files
				lines := strings.Count(strings.TrimSpace(part.Text), "\n") + 1
				_, err = fmt.Fprintf(p.screen, "(%d lines that atoll put here; --json shows them)\n", lines)
				continue
			}
			_, err = fmt.Fprintf(p.screen, "%s\n", strings.TrimSuffix(part.Text, "\n"))
		case message.Reasoning:
			_, err = fmt.Fprintf(p.screen, "(thinks) %s\n", strings.TrimSuffix(part.Text, "\n"))
		case message.Tool:
			line := callLine(event.ToolCall{Name: part.Name, Input: part.Input, Raw: part.Raw})
			_, err = fmt.Fprintf(p.screen, "* %s [%s]\n", visible(line), part.State)
			if err == nil && part.Diff != "" {
				_, err = fmt.Fprint(p.screen, part.Diff)
			}
		}
	}
	return err
}

func (p *program) sessionDelete(c *cli.Context) error {
	if err := arguments(c, 1, 1, "ID"); err != nil {
		return err
	}
	svc, err := p.open(c)
	if err != nil {
		return err
	}
	defer svc.Close()
	id := c.Args().First()
	if err := svc.Delete(id); err != nil {
		return err
	}
	if c.Bool("json") {
		return p.writeJSON(map[string]string{"deleted": id})
	}
	_, err = fmt.Fprintf(p.screen, "deleted %s\n", id)
	return err
}
