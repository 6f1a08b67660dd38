// Package agent runs turns: it shows the conversation to the model, runs the tools that the model calls, and goes on until the
// model answers, something stops it, or a limit is reached.
//
// A turn is a machine of four phases: prepare, model, tools, finish. Everything that happens goes through the session's journal;
// nobody else is told anything. A turn always ends with one TurnFinished event.
package agent

import (
	"context"
	"errors"
	"fmt"

	"atoll/core/event"
	"atoll/core/llm"
	"atoll/core/message"
	"atoll/core/permission"
	"atoll/core/session"
	"atoll/core/store"
	"atoll/core/tool"
)

// Limits that hold where Options say nothing.
const (
	DefaultMaxSteps  = 40
	DefaultMaxTokens = 4096
)

// Options configure an Agent.
type Options struct {
	Session *session.Session   // required
	Model   llm.Model          // required
	Tools   *tool.Registry     // required
	Broker  *permission.Broker // required
	// System is the system prompt. It stays the same for the whole session.
	System string
	// MaxSteps limits the model steps of a turn; 0 means DefaultMaxSteps.
	MaxSteps int
	// MaxTokens limits the output of one model step; 0 means DefaultMaxTokens.
	MaxTokens int
	Sampling  llm.Sampling
	// View is what the agent itself sees of the workspace; nil means nothing.
	View *View
	// Nudge lets the agent tell the model once a turn to go on, when it ends its turn with the announcement of an action that
	// it did not take, with nothing at all, or with a change to a file's code that it only showed. See RATIONALE.md, "Why a nudge?".
	Nudge bool
}

// View is what an agent sees of the workspace without a call of the model: as much as the tools, which it comes through.
type View struct {
	// Overview is shown to the model before the first prompt of a session, such as a list of files; "" means nothing.
	// It becomes part of the user's message in the journal, so that it stays the same for the whole session.
	Overview func(ctx context.Context) string
	// Find returns the files that hold a line of text.
	Find func(ctx context.Context, line string) []string
	// Read returns the text of a file, "" where it is too long or no plain text.
	Read func(ctx context.Context, path string) string
	// Edit is the tool that replaces text of a file; its first arguments are "path" and "old".
	Edit string
}

// Agent runs the turns of one session, one at a time.
type Agent struct {
	opts Options
}

// New returns an agent.
func New(o Options) *Agent {
	if o.Session == nil || o.Model == nil || o.Tools == nil || o.Broker == nil {
		panic("BUG: agent without session, model, tools or broker")
	}
	if o.MaxSteps <= 0 {
		o.MaxSteps = DefaultMaxSteps
	}
	if o.MaxTokens <= 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	return &Agent{opts: o}
}

// Outcome is how a turn ended.
type Outcome struct {
	Stop event.Stop
	// Text is the answer: the text of the turn's last message, possibly cut off.
	Text string
	// Err is set where Stop is StopError, StopStorage, StopContext, StopEmpty or StopCancelled.
	Err   error
	Steps int
	Usage message.Usage
	// NeedsUser says that something was denied which a person could have allowed.
	NeedsUser bool
}

type phase int

const (
	prepare phase = iota
	model
	tools
	finish
	done
)

// turn is the state of a running turn.
type turn struct {
	*Agent
	ctx    context.Context
	number int

	req   *llm.Request
	calls []call // of the step, that are still to run
	loop  guard
	// missing is set when a tool cannot run on this machine at all.
	missing error

	nudged bool
	// choice is the tool choice of the next step.
	choice llm.ToolChoice
	// changed says that the turn changed a file; change is the call before, as key makes it, if that one did.
	changed bool
	change  string
	out     Outcome
}

// Turn runs one turn for the user's text. It returns after TurnFinished was published. The end of ctx cancels the turn: what the
// model wrote until then is kept and marked.
func (a *Agent) Turn(ctx context.Context, text string) Outcome {
	t := &turn{Agent: a, ctx: ctx, number: a.opts.Session.State().Turn + 1}
	p := prepare
	if err := t.begin(text); err != nil {
		p = t.fail(err)
	}
	for p != done {
		switch p {
		case prepare:
			p = t.prepare()
		case model:
			p = t.model()
		case tools:
			p = t.tools()
		case finish:
			p = t.finish()
		}
	}
	return t.out
}

func (t *turn) begin(text string) error {
	s := t.opts.Session
	m := message.NewUser(s.NextMessageID(), text)
	if t.number == 1 && t.opts.View != nil {
		if o := t.opts.View.Overview(t.ctx); o != "" {
			m.Parts = []message.Part{message.Text{Text: o, Synthetic: true}, message.Text{Text: text}}
		}
	}
	return s.Emit(event.TurnStarted{Turn: t.number}, event.MessageStarted{Message: m})
}

// prepare builds the request of the next step.
func (t *turn) prepare() phase {
	if t.ctx.Err() != nil {
		return t.cancelled()
	}
	if t.out.Steps >= t.opts.MaxSteps {
		t.out.Stop = event.StopSteps
		return finish
	}
	req := &llm.Request{
		System:     t.opts.System,
		Messages:   t.opts.Session.ForModel(),
		MaxTokens:  t.opts.MaxTokens,
		Sampling:   t.opts.Sampling,
		ToolChoice: t.choice,
	}
	t.choice = llm.ToolChoice{}
	for _, sp := range t.opts.Tools.Specs(t.opts.Broker.Mode()) {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: sp.Name, Description: sp.Description, Parameters: sp.Parameters})
	}
	t.req = req
	return model
}

// finish ends the turn.
func (t *turn) finish() phase {
	o := &t.out
	if o.NeedsUser && (o.Stop == event.StopEnd || o.Stop == event.StopEmpty) {
		o.Stop = event.StopPermission
	}
	e := event.TurnFinished{Turn: t.number, Stop: o.Stop, Text: o.Text, Steps: o.Steps, Usage: o.Usage}
	if o.Err != nil {
		e.Error = o.Err.Error()
	}
	s := t.opts.Session
	if o.Stop == event.StopStorage {
		s.Unjournaled(e)
		return done
	}
	if err := s.Emit(e); err != nil {
		o.Stop, o.Err = event.StopStorage, err
		e.Stop, e.Error = o.Stop, err.Error()
		s.Unjournaled(e)
		return done
	}
	// Only a cache of the journal: a list makes it again.
	_ = s.SaveMeta()
	return done
}

// fail ends the turn for an error of the journal.
func (t *turn) fail(err error) phase {
	t.out.Stop, t.out.Err = event.StopStorage, err
	if errors.Is(err, store.ErrDiskFull) {
		t.out.Err = fmt.Errorf("%w: the session cannot be written", store.ErrDiskFull)
	}
	return finish
}

func (t *turn) cancelled() phase {
	t.out.Stop, t.out.Err = event.StopCancelled, context.Cause(t.ctx)
	return finish
}
