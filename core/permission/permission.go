// Package permission decides whether a tool call may run. A mode says what can be granted at all; rules narrow it; what is left
// open is asked, once, through one place.
//
// The decision is about the parsed call (which paths, which program), never about a text that looks like one. What a decision
// allows is enforced by the sandbox's grants, not here.
package permission

import (
	"fmt"
	"path"
	"strings"
)

// Mode is what a session can be granted at most.
type Mode string

// The modes.
const (
	ReadOnly       Mode = "read-only"
	WorkspaceWrite Mode = "workspace-write"
)

// ParseMode reads a mode's name.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case ReadOnly, WorkspaceWrite:
		return m, nil
	case "plan":
		return "", fmt.Errorf("mode plan is not supported yet: use %s or %s", ReadOnly, WorkspaceWrite)
	default:
		return "", fmt.Errorf("unknown mode %q: use %s or %s", s, ReadOnly, WorkspaceWrite)
	}
}

// Access is what a call does to what it names.
type Access string

// The kinds of access.
const (
	Read  Access = "read"
	Write Access = "write"
)

// Grants reports whether a session in this mode can be given the access.
func (m Mode) Grants(a Access) bool {
	switch a {
	case Read:
		return m == ReadOnly || m == WorkspaceWrite
	case Write:
		return m == WorkspaceWrite
	}
	return false
}

// Request is a call that wants permission.
type Request struct {
	// ID is the caller's name for the request, unique within the session.
	ID string
	// CallID is the tool call's id.
	CallID string
	Tool   string
	Access Access
	// Paths are what the call touches: slash-separated, below the workspace ("." is the workspace itself). A path that goes
	// through symbolic links appears twice, as written and as resolved.
	Paths []string
	// Recursive says that everything below Paths may be touched too.
	Recursive bool
	// Commands are the simple commands of a script, program and arguments. Empty for tools that run none.
	Commands [][]string
}

// Subject is a short text of what the request is about.
func (r Request) Subject() string {
	if len(r.Commands) > 0 {
		parts := make([]string, len(r.Commands))
		for i, c := range r.Commands {
			parts[i] = strings.Join(c, " ")
		}
		return strings.Join(parts, "; ")
	}
	if len(r.Paths) > 0 {
		return r.Paths[0]
	}
	return ""
}

// Outcome is how a request was decided, and by whom.
type Outcome string

// The outcomes.
const (
	AllowedByMode     Outcome = "allowed_by_mode"
	AllowedByRule     Outcome = "allowed_by_rule"
	AllowedOnce       Outcome = "allowed_once"
	AllowedSession    Outcome = "allowed_session"
	DeniedByMode      Outcome = "denied_by_mode"
	DeniedByRule      Outcome = "denied_by_rule"
	DeniedNobodyToAsk Outcome = "denied_nobody_to_ask"
	Rejected          Outcome = "rejected"
	Cancelled         Outcome = "cancelled"
)

// Decision answers a Request.
type Decision struct {
	Outcome Outcome
	// Rule is the rule that decided, in its text form; empty where none did.
	Rule string
}

// Allowed reports whether the call may run.
func (d Decision) Allowed() bool {
	switch d.Outcome {
	case AllowedByMode, AllowedByRule, AllowedOnce, AllowedSession:
		return true
	}
	return false
}

// NeedsUser reports whether a person could have said yes, or could by starting in another mode, and nobody was there.
func (d Decision) NeedsUser() bool {
	return d.Outcome == DeniedByMode || d.Outcome == DeniedNobodyToAsk
}

// Text tells the model why its call did not run, and what to do about it.
func (d Decision) Text(r Request, m Mode) string {
	subject := r.Tool
	if s := r.Subject(); s != "" {
		subject += " " + s
	}
	switch d.Outcome {
	case DeniedByMode:
		return fmt.Sprintf("denied: %s: this session is %s. Do not try again; answer without it and say what you would change.", subject, m)
	case DeniedByRule:
		return fmt.Sprintf("denied by rule %s: %s. Do not try again; find another way or say that it is not allowed.", d.Rule, subject)
	case DeniedNobodyToAsk:
		return fmt.Sprintf("denied: %s needs permission and nobody can be asked. Do not try again; go on without it.", subject)
	case Rejected:
		return fmt.Sprintf("rejected by the user: %s. Ask what to do instead, or go on without it.", subject)
	case Cancelled:
		return fmt.Sprintf("cancelled: %s", subject)
	default:
		return ""
	}
}

// clean returns the canonical form of a path below the workspace.
func clean(p string) string {
	p = path.Clean(strings.TrimPrefix(p, "/"))
	if p == "" {
		return "."
	}
	return p
}
