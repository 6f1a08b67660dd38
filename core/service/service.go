// Package service is the one facade that front ends use: sessions of a workspace, prompts, events, permissions. Front ends never
// talk to the agent, the journal or the model.
package service

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"atoll/core/agent"
	"atoll/core/event"
	"atoll/core/llm"
	"atoll/core/message"
	"atoll/core/permission"
	"atoll/core/session"
	"atoll/core/tool"
)

// Options are what a Service is made of.
type Options struct {
	Home *session.Home // required
	// Workspace is the absolute path of the workspace, without symbolic links. Required.
	Workspace string
	// Mode is the mode of new sessions, and the new mode of a session that is opened again; empty means read-only for new
	// ones and no change for others.
	Mode permission.Mode
	// UserRules narrow the mode.
	UserRules []permission.Rule
	// Interactive says that somebody answers permission requests, with Session.Resolve.
	Interactive bool
	// OpenModel loads the model. It is called once, before the first session starts.
	OpenModel func(ctx context.Context) (llm.Model, error)
	// Tools returns the tools; spill is the session's folder for long output, which they may read. It is called once for
	// each session.
	Tools func(spill string) (*tool.Registry, error)
	// System returns the system prompt of a session, and what the user should know about it.
	System func(canWrite bool) (prompt string, notices []string, err error)
	// View returns what the agent sees of the workspace through the tools; nil means nothing. It is taken where no rule
	// keeps a tool from looking everywhere.
	View func(tools *tool.Registry) *agent.View
	// MaxSteps, MaxTokens, Sampling and Nudge are as in agent.Options.
	MaxSteps, MaxTokens int
	Sampling            llm.Sampling
	Nudge               bool
	// Close is called by Close at the end; nil means nothing.
	Close func() error
}

// Service serves one workspace. It is safe for concurrent use.
type Service struct {
	opts Options

	mu    sync.Mutex // guards model; held while it loads, so that it loads once
	model llm.Model
}

// New returns a service.
func New(o Options) *Service {
	if o.Home == nil || o.Workspace == "" || o.OpenModel == nil || o.Tools == nil || o.System == nil {
		panic("BUG: incomplete service options")
	}
	return &Service{opts: o}
}

// Workspace returns the workspace's path.
func (s *Service) Workspace() string { return s.opts.Workspace }

// Model returns the model and loads it first where that was not done. What keeps it from loading is an *llm.Error of kind Load
// or an *Error.
func (s *Service) Model(ctx context.Context) (llm.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model != nil {
		return s.model, nil
	}
	m, err := s.opts.OpenModel(ctx)
	if err != nil {
		return nil, err
	}
	s.model = m
	return m, nil
}

// Start begins a new session. The model is loaded first: without one there is no session.
func (s *Service) Start(ctx context.Context) (*Session, error) {
	m, err := s.Model(ctx)
	if err != nil {
		return nil, err
	}
	mode := s.opts.Mode
	if mode == "" {
		mode = permission.ReadOnly
	}
	log, err := s.opts.Home.Create(session.Start{Workspace: s.opts.Workspace, Mode: string(mode), Model: m.Info().ID})
	if err != nil {
		return nil, err
	}
	return s.attach(log, m, mode)
}

// Continue opens the workspace's last session.
func (s *Service) Continue(ctx context.Context) (*Session, error) {
	id, err := s.opts.Home.Last(s.opts.Workspace)
	if err != nil {
		return nil, err
	}
	return s.Resume(ctx, id)
}

// Resume opens a session. It keeps its mode unless Options.Mode says another.
func (s *Service) Resume(ctx context.Context, id string) (*Session, error) {
	if err := session.CheckID(id); err != nil {
		return nil, err
	}
	m, err := s.Model(ctx)
	if err != nil {
		return nil, err
	}
	log, err := s.opts.Home.Open(s.opts.Workspace, id)
	if err != nil {
		return nil, err
	}
	mode, err := permission.ParseMode(log.State().Mode)
	if err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	if s.opts.Mode != "" && s.opts.Mode != mode {
		mode = s.opts.Mode
		if err := log.Emit(event.ModeChanged{Mode: string(mode)}); err != nil {
			_ = log.Close()
			return nil, err
		}
	}
	return s.attach(log, m, mode)
}

func (s *Service) attach(log *session.Session, m llm.Model, mode permission.Mode) (*Session, error) {
	fail := func(err error) (*Session, error) {
		_ = log.Close()
		return nil, err
	}
	reg, err := s.opts.Tools(log.SpillDir())
	if err != nil {
		return fail(err)
	}
	system, notices, err := s.opts.System(mode.Grants(permission.Write))
	if err != nil {
		return fail(err)
	}
	policy := permission.Policy{Mode: mode, User: s.opts.UserRules}
	broker := permission.NewBroker(policy, s.opts.Interactive)
	var view *agent.View
	if s.opts.View != nil && looksEverywhere(policy) {
		view = s.opts.View(reg)
	}
	return &Session{
		log: log, broker: broker, notices: notices, model: m.Info().ID,
		agent: agent.New(agent.Options{
			Session: log, Model: m, Tools: reg, Broker: broker, System: system, View: view,
			MaxSteps: s.opts.MaxSteps, MaxTokens: s.opts.MaxTokens, Sampling: s.opts.Sampling, Nudge: s.opts.Nudge,
		}),
	}, nil
}

// looksEverywhere reports whether no rule keeps a tool that looks from any part of the workspace.
func looksEverywhere(p permission.Policy) bool {
	for _, name := range []string{"glob", "ls", "grep", "read"} {
		look := permission.Request{Tool: name, Access: permission.Read, Paths: []string{"."}, Recursive: true}
		if p.Evaluate(look).Action != permission.Allow {
			return false
		}
	}
	return true
}

// List returns the workspace's sessions, the last used first.
func (s *Service) List() ([]session.Meta, error) { return s.opts.Home.List(s.opts.Workspace) }

// ListAll returns the sessions of all workspaces, the last used first.
func (s *Service) ListAll() ([]session.Meta, error) { return s.opts.Home.ListAll() }

// Show reads a session without changing it.
func (s *Service) Show(id string) (session.State, error) {
	return s.opts.Home.View(s.opts.Workspace, id)
}

// Events calls fn for each journaled event of a session that nobody has open.
func (s *Service) Events(id string, fn func(event.Event) error) error {
	return s.opts.Home.Events(s.opts.Workspace, id, fn)
}

// Last returns the id of the workspace's last session.
func (s *Service) Last() (string, error) { return s.opts.Home.Last(s.opts.Workspace) }

// Delete removes a session.
func (s *Service) Delete(id string) error { return s.opts.Home.Delete(s.opts.Workspace, id) }

// Close frees the model and the tools. Sessions must be closed before.
func (s *Service) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.model != nil {
		err = s.model.Close()
		s.model = nil
	}
	if s.opts.Close != nil {
		err = errors.Join(err, s.opts.Close())
	}
	return err
}

// Session is an open session.
type Session struct {
	log     *session.Session
	broker  *permission.Broker
	agent   *agent.Agent
	model   string
	notices []string // shown with the first prompt

	turn sync.Mutex // one turn at a time; guards notices
}

// ID returns the session's id.
func (s *Session) ID() string { return s.log.ID() }

// Mode returns the session's mode.
func (s *Session) Mode() permission.Mode { return s.broker.Mode() }

// State returns a copy of the session's projection.
func (s *Session) State() session.State { return s.log.State() }

// Subscribe returns a stream of all events from now on. Whoever subscribes must read until C is closed, or Close it: the turn
// waits for slow readers. C is closed by Session.Close.
func (s *Session) Subscribe(buffer int) *event.Subscription { return s.log.Subscribe(buffer) }

// Events calls fn for each journaled event of the session from number from on.
func (s *Session) Events(from uint64, fn func(event.Event) error) error {
	return s.log.Events(from, fn)
}

// Resolve answers a permission request; the first answer counts. It returns false for a request that is not pending.
func (s *Session) Resolve(id string, reply permission.Reply) bool { return s.broker.Resolve(id, reply) }

// Prompt runs a turn and returns after its last event, TurnFinished, was published. The end of ctx cancels the turn.
func (s *Session) Prompt(ctx context.Context, text string) Result {
	s.turn.Lock()
	defer s.turn.Unlock()
	for _, n := range s.notices {
		if err := s.log.Emit(event.Notice{Text: n}); err != nil {
			break // the turn meets the same error and reports it
		}
	}
	s.notices = nil
	o := s.agent.Turn(ctx, text)
	r := Result{
		Type: "result", Text: o.Text, Session: s.log.ID(), Stop: o.Stop, Usage: o.Usage, Steps: o.Steps,
		Model: s.model, Mode: s.broker.Mode(), ExitCode: codeOfTurn(o.Stop, o.Err, o.NeedsUser), Err: o.Err,
	}
	r.IsError = r.ExitCode != ExitOK
	r.Error = explain(o)
	return r
}

// Close ends the session's subscriptions and gives it free for other processes. No turn may be running.
func (s *Session) Close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.log.Close()
}

// Result is how a prompt ended. Its JSON form is the last line of a headless run.
type Result struct {
	Type     string          `json:"type"` // always "result"
	IsError  bool            `json:"is_error"`
	Text     string          `json:"text"`
	Session  string          `json:"session"`
	Stop     event.Stop      `json:"stop"`
	Error    string          `json:"error,omitempty"`
	Usage    message.Usage   `json:"usage"`
	Steps    int             `json:"steps"`
	Model    string          `json:"model"`
	Mode     permission.Mode `json:"mode"`
	ExitCode ExitCode        `json:"exit_code"`
	// Err is the cause behind Error, where there is one.
	Err error `json:"-"`
}

// explain returns one line for the user about a turn that did not just end.
func explain(o agent.Outcome) string {
	text := ""
	switch {
	case o.Stop == event.StopCancelled:
		text = "interrupted"
	case o.Err != nil:
		text = o.Err.Error()
	case o.Stop == event.StopSteps:
		text = fmt.Sprintf("the limit of %d steps was reached", o.Steps)
	case o.Stop == event.StopLoop:
		text = "stopped: the model made the same calls with the same results again and again"
	case o.Stop == event.StopLength:
		text = "the answer was cut: it reached the limit of output tokens"
	case o.Stop == event.StopRefusal:
		text = "the model declined"
	}
	if o.NeedsUser && o.Stop != event.StopCancelled {
		denied := "a permission was needed and nobody could be asked"
		if text == "" {
			return denied
		}
		return denied + "; then: " + text
	}
	return text
}
