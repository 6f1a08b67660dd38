package agent

import (
	"errors"
	"fmt"
	"strings"

	"atoll/core/event"
	"atoll/core/llm"
	"atoll/core/permission"
	"atoll/core/tool"
)

// changedText answers a call that repeats the change made just before.
const changedText = "This change is already made; nothing was done again. If the task is done, give a short final answer."

// tools runs the calls of a step, in order.
func (t *turn) tools() phase {
	for len(t.calls) > 0 {
		if t.ctx.Err() != nil {
			return t.drop("cancelled by the user before it ran")
		}
		c := t.calls[0]
		t.calls = t.calls[1:]
		var res tool.Result
		if t.change != "" && c.key() == t.change {
			res, t.choice = tool.Result{Output: changedText}, llm.ToolChoice{Mode: llm.ToolNone}
		} else {
			var err error
			if res, err = t.run(c); err != nil {
				return t.fail(err)
			}
			t.change = ""
			if res.Diff != "" && !res.IsError {
				t.changed, t.change = true, c.key()
			}
		}
		repeats := t.loop.add(c, res)
		if repeats == loopWarn {
			res.Output += loopText
			t.choice = llm.ToolChoice{Mode: llm.ToolNone}
		}
		if err := t.opts.Session.Emit(event.ToolResult{
			CallID: c.id, Name: c.name, IsError: res.IsError, Output: res.Output, Title: res.Title, Diff: res.Diff,
		}); err != nil {
			return t.fail(err)
		}
		if t.missing != nil {
			t.out.Stop, t.out.Err = event.StopError, t.missing
			return t.drop("not run: the tools are not available")
		}
		if repeats >= loopStop && t.ctx.Err() == nil {
			t.out.Stop = event.StopLoop
			return t.drop("not run: the turn was stopped, because the same calls gave the same results again and again")
		}
	}
	return prepare
}

// drop answers the calls that will not run any more.
func (t *turn) drop(why string) phase {
	var bodies []event.Body
	for _, c := range t.calls {
		bodies = append(bodies, event.ToolResult{CallID: c.id, Name: c.name, IsError: true, Output: why})
	}
	t.calls = nil
	if len(bodies) > 0 {
		if err := t.opts.Session.Emit(bodies...); err != nil {
			return t.fail(err)
		}
	}
	if t.out.Stop == "" {
		return t.cancelled()
	}
	return finish
}

// run runs one call. What goes wrong with the call is its result; an error is one of the journal.
func (t *turn) run(c call) (tool.Result, error) {
	if c.raw != "" {
		return failed(fmt.Sprintf("the tool call could not be read: %s. Write it again as one JSON object with \"name\" and \"arguments\".", c.reason)), nil
	}
	mode := t.opts.Broker.Mode()
	tl, err := t.opts.Tools.Get(c.name, mode)
	if err != nil {
		return failed(err.Error()), nil
	}
	input, err := t.opts.Tools.CheckInput(c.name, c.input)
	if err != nil {
		return failed(err.Error()), nil
	}
	tc := tool.Call{ID: c.id, Input: input, Mode: mode}
	req, err := tl.Request(tc)
	if err != nil {
		return failed(err.Error()), nil
	}
	d, req, err := t.permit(c, req)
	if err != nil {
		return tool.Result{}, err
	}
	if !d.Allowed() {
		t.out.NeedsUser = t.out.NeedsUser || d.NeedsUser()
		return failed(d.Text(req, mode)), nil
	}
	title := strings.TrimSpace(c.name + " " + req.Subject())
	if err := t.opts.Session.Emit(event.ToolStarted{CallID: c.id, Title: title}); err != nil {
		return tool.Result{}, err
	}
	res, err := tl.Run(t.ctx, tc)
	switch {
	case err != nil && t.ctx.Err() != nil:
		res = failed("cancelled by the user; it may have taken effect partly")
	case errors.Is(err, tool.ErrUnavailable):
		t.missing = err
		res = failed(err.Error())
	case err != nil:
		res = failed(err.Error())
	}
	if res.Title == "" {
		res.Title = title
	}
	res.Output = strings.ToValidUTF8(res.Output, "\ufffd")
	res.Diff = strings.ToValidUTF8(res.Diff, "\ufffd")
	res.Output = tool.Truncate(res.Output, func(text string) (string, error) { return t.opts.Session.Spill(c.id, text) })
	return res, nil
}

// permit decides whether a call may run, and journals a decision that is not the mode's plain yes.
func (t *turn) permit(c call, req permission.Request) (permission.Decision, permission.Request, error) {
	s := t.opts.Session
	req.CallID, req.Tool = c.id, c.name
	req.ID = s.NextAskID()
	asked := false
	d, err := t.opts.Broker.Decide(t.ctx, req, func(rule permission.Rule) error {
		asked = true
		return s.Emit(event.PermissionAsked{ID: req.ID, CallID: c.id, Tool: c.name, Subject: req.Subject(), SessionRule: rule.String()})
	})
	if err != nil {
		return d, req, err
	}
	if d.Outcome == permission.AllowedByMode {
		return d, req, nil
	}
	e := event.PermissionResolved{CallID: c.id, Tool: c.name, Outcome: string(d.Outcome), Rule: d.Rule}
	if asked {
		e.ID = req.ID
	}
	return d, req, s.Emit(e)
}

func failed(text string) tool.Result { return tool.Result{Output: text, IsError: true} }
