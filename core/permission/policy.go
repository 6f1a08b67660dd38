package permission

// Policy is a mode with the rules that narrow it. The zero value of the rules changes nothing. A Policy is a value; what it
// holds must not change while it is in use.
type Policy struct {
	Mode Mode
	// User are the rules of the user's own configuration; a deny among them is final.
	User []Rule
	// Project are the rules of a trusted project. They win over the user's, except over a deny.
	Project []Rule
	// Session are the rules that were granted while the session ran. They answer what else would be asked.
	Session []Rule
}

// Verdict is what a policy says about a request.
type Verdict struct {
	Action Action
	// Rule decided; nil where the mode did.
	Rule *Rule
}

// Evaluate decides a request. A request is made of parts, one for each path or command; the strictest part decides.
func (p Policy) Evaluate(r Request) Verdict {
	if !p.Mode.Grants(r.Access) {
		return Verdict{Action: Deny}
	}
	if len(r.Commands) > 0 {
		v := Verdict{Action: Allow}
		for _, argv := range r.Commands {
			v = strictest(v, p.part(r, func(rule Rule) bool { return rule.Path == "" && rule.matchesCommand(argv) }))
		}
		return v
	}
	paths := r.Paths
	if len(paths) == 0 {
		return p.part(r, func(rule Rule) bool { return rule.Path == "" && rule.Command == "" })
	}
	v := Verdict{Action: Allow}
	for _, path := range paths {
		v = strictest(v, p.part(r, func(rule Rule) bool {
			return rule.Command == "" && rule.matchesPath(path, r.Recursive)
		}))
	}
	return v
}

// part decides one path or command: the mode's default, then the layers, the last match of each.
func (p Policy) part(r Request, match func(Rule) bool) Verdict {
	v := Verdict{Action: Allow} // within the mode's grants nothing is asked by default
	user := lastMatch(p.User, r.Tool, match)
	if user != nil {
		v = Verdict{user.Action, user}
		if user.Action == Deny {
			return v
		}
	}
	if rule := lastMatch(p.Project, r.Tool, match); rule != nil {
		v = Verdict{rule.Action, rule}
	}
	if v.Action == Ask {
		if rule := lastMatch(p.Session, r.Tool, match); rule != nil {
			v = Verdict{rule.Action, rule}
		}
	}
	return v
}

func lastMatch(rules []Rule, tool string, match func(Rule) bool) *Rule {
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].matchesTool(tool) && match(rules[i]) {
			return &rules[i]
		}
	}
	return nil
}

func strictest(a, b Verdict) Verdict {
	if a.Action == b.Action {
		if a.Rule == nil {
			return b
		}
		return a
	}
	if stricter(a.Action, b.Action) == a.Action {
		return a
	}
	return b
}
