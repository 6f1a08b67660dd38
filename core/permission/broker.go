package permission

import (
	"context"
	"sync"
)

// Reply is what a person answers.
type Reply string

// The replies. Anything else counts as Reject.
const (
	ReplyOnce    Reply = "once"
	ReplySession Reply = "session"
	ReplyReject  Reply = "reject"
)

// Broker decides requests of one session. Every decision goes through Decide, every answer through Resolve. It is safe for
// concurrent use.
type Broker struct {
	interactive bool

	mu      sync.Mutex // guards policy.Session and pending
	policy  Policy
	pending map[string]chan Reply
}

// NewBroker returns a broker. Without interactive nobody can be asked: what a rule wants asked is denied at once.
func NewBroker(p Policy, interactive bool) *Broker {
	p.Session = append([]Rule(nil), p.Session...)
	return &Broker{interactive: interactive, policy: p, pending: map[string]chan Reply{}}
}

// Mode returns the session's mode.
func (b *Broker) Mode() Mode { return b.policy.Mode }

// Decide answers r. If a person has to be asked, asked is called after the request is registered, so that an answer cannot come
// too early, and Decide waits for Resolve or the end of ctx. An error of asked is returned; the request then counts as cancelled.
func (b *Broker) Decide(ctx context.Context, r Request, asked func(SessionRule Rule) error) (Decision, error) {
	b.mu.Lock()
	v := b.policy.Evaluate(r)
	if v.Action != Ask || !b.interactive {
		b.mu.Unlock()
		return decided(v), nil
	}
	if _, ok := b.pending[r.ID]; ok {
		b.mu.Unlock()
		panic("BUG: permission request " + r.ID + " asked twice")
	}
	answer := make(chan Reply, 1)
	b.pending[r.ID] = answer
	b.mu.Unlock()

	rule := sessionRule(r)
	if err := asked(rule); err != nil {
		b.forget(r.ID)
		return Decision{Outcome: Cancelled}, err
	}
	select {
	case reply := <-answer:
		switch reply {
		case ReplyOnce:
			return Decision{Outcome: AllowedOnce}, nil
		case ReplySession:
			b.mu.Lock()
			b.policy.Session = append(b.policy.Session, rule)
			b.mu.Unlock()
			return Decision{Outcome: AllowedSession, Rule: rule.String()}, nil
		default:
			return Decision{Outcome: Rejected}, nil
		}
	case <-ctx.Done():
		b.forget(r.ID)
		return Decision{Outcome: Cancelled}, nil
	}
}

func decided(v Verdict) Decision {
	d := Decision{}
	if v.Rule != nil {
		d.Rule = v.Rule.String()
	}
	switch {
	case v.Action == Ask:
		d.Outcome = DeniedNobodyToAsk
	case v.Action == Deny && v.Rule == nil:
		d.Outcome = DeniedByMode
	case v.Action == Deny:
		d.Outcome = DeniedByRule
	case v.Rule == nil:
		d.Outcome = AllowedByMode
	default:
		d.Outcome = AllowedByRule
	}
	return d
}

// Resolve answers a pending request. The first answer counts; it returns false for a request that is not pending.
func (b *Broker) Resolve(id string, reply Reply) bool {
	b.mu.Lock()
	answer, ok := b.pending[id]
	delete(b.pending, id)
	b.mu.Unlock()
	if ok {
		answer <- reply
	}
	return ok
}

func (b *Broker) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, id)
}

// sessionRule is the rule that "for this session" adds: this tool on the first path, or the first command; never more than was
// asked for.
func sessionRule(r Request) Rule {
	rule := Rule{Tool: r.Tool, Action: Allow}
	switch {
	case len(r.Commands) > 0:
		rule.Command = quoteWords(r.Commands[0])
	case len(r.Paths) > 0:
		rule.Path = quoteGlob(clean(r.Paths[0]))
	}
	return rule
}

func quoteWords(words []string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += " "
		}
		out += quoteGlob(w)
	}
	return out
}

// quoteGlob escapes what a glob would interpret.
func quoteGlob(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '[', ']', '{', '}', '\\':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}
