package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Keys under which models write the parts of a call, the usual ones first.
var (
	nameKeys = []string{"name", "tool_name", "function_name", "tool", "function"}
	argsKeys = []string{"arguments", "parameters", "args", "params", "input"}
	// wrapKeys hold a whole call.
	wrapKeys = []string{"function", "tool_call", "function_call"}
	// sideKeys stand beside a call and mean nothing here.
	sideKeys = []string{"type", "id", "tool_call_id", "index", "tool_calls"}
)

// callKey says whether an object whose first key this is can be a call.
func callKey(key string) bool {
	return slices.Contains(nameKeys, key) || slices.Contains(argsKeys, key) || slices.Contains(wrapKeys, key) || slices.Contains(sideKeys, key)
}

// toolSet are the offered tools.
type toolSet map[string]*toolInfo

func newToolSet(tools []Tool) toolSet {
	s := toolSet{}
	for _, t := range tools {
		s[t.Name] = newToolInfo(t)
	}
	return s
}

// find looks a tool up under the name a model wrote.
func (s toolSet) find(name string) *toolInfo {
	name = strings.TrimSpace(name)
	if t := s[name]; t != nil {
		return t
	}
	for _, p := range []string{"functions.", "function.", "tools.", "tool."} {
		if rest, ok := strings.CutPrefix(name, p); ok {
			if t := s[rest]; t != nil {
				return t
			}
		}
	}
	if rest, ok := strings.CutSuffix(name, "()"); ok {
		return s[rest]
	}
	return nil
}

// callObject is a call read from an object.
type callObject struct {
	name string
	tool *toolInfo // nil: not offered
	args Value     // nil: the object has none
	// explicit says that the object has a key for arguments, or needs none.
	explicit bool
}

// callsIn reads the calls in a value: an object, or a list of them. ok is false
// where anything in it is no call.
func (s toolSet) callsIn(v Value) (calls []callObject, ok bool) {
	switch v := v.(type) {
	case *List:
		for _, it := range v.items {
			c, ok := s.callIn(it, 0)
			if !ok {
				return calls, false
			}
			calls = append(calls, c)
		}
		return calls, true
	case *Map:
		if l, ok := v.Get("tool_calls"); ok {
			if l, ok := l.(*List); ok {
				return s.callsIn(l)
			}
		}
		c, ok := s.callIn(v, 0)
		if !ok {
			return nil, false
		}
		return []callObject{c}, true
	}
	return nil, false
}

func (s toolSet) callIn(v Value, depth int) (callObject, bool) {
	m, ok := v.(*Map)
	if !ok || depth > 2 {
		return callObject{}, false
	}
	for _, k := range wrapKeys {
		if in, ok := m.Get(k); ok {
			if in, ok := in.(*Map); ok {
				return s.callIn(in, depth+1)
			}
		}
	}
	c := callObject{}
	found := false
	for _, k := range nameKeys {
		if n, ok := m.Get(k); ok {
			if n, ok := n.(text); ok && strings.TrimSpace(n.s) != "" {
				c.name, found = strings.TrimSpace(n.s), true
				break
			}
		}
	}
	if !found {
		return c, false
	}
	if c.tool = s.find(c.name); c.tool != nil {
		c.name = c.tool.name
	}
	for _, k := range argsKeys {
		if a, ok := m.Get(k); ok {
			c.args, c.explicit = a, true
			return c, true
		}
	}
	// No key for arguments: none at all, or written beside the name.
	rest := NewMap()
	for i, k := range m.keys {
		kt, _ := k.(text)
		if slices.Contains(nameKeys, kt.s) || slices.Contains(sideKeys, kt.s) {
			continue
		}
		rest.set(hashKey{'s', kt.s}, k, m.vals[i])
	}
	if rest.Len() == 0 {
		c.explicit = c.tool != nil && len(c.tool.required()) == 0
		return c, true
	}
	if c.tool == nil {
		return c, true
	}
	for _, k := range rest.keys {
		if !hasKey(c.tool.props, k.(text).s) {
			return c, true
		}
	}
	c.args, c.explicit = rest, true
	return c, true
}

// finish checks a call and makes its event.
func (s toolSet) finish(c callObject, raw string) Event {
	fail := func(reason ErrorReason, format string, a ...any) Event {
		return Event{Kind: EventToolError, Name: c.name, Raw: raw, Reason: reason, Message: fmt.Sprintf(format, a...)}
	}
	if c.tool == nil {
		return fail(UnknownTool, "there is no tool %q; the tools are: %s", c.name, s.names())
	}
	args := NewMap()
	switch a := c.args.(type) {
	case nil, none:
	case *Map:
		args = a
	case text:
		if strings.TrimSpace(a.s) == "" {
			break
		}
		vs, end := looseAll(a.s, true)
		if end > looseClosed || len(vs) != 1 {
			return fail(InvalidArguments, "the arguments of %s are not a JSON object", c.name)
		}
		m, ok := vs[0].(*Map)
		if !ok {
			return fail(InvalidArguments, "the arguments of %s are not a JSON object", c.name)
		}
		args = m
	default:
		return fail(InvalidArguments, "the arguments of %s are not a JSON object", c.name)
	}
	fitted, err := c.tool.fit(args)
	if err != nil {
		return fail(InvalidArguments, "%s: %v", c.name, err)
	}
	return Event{Kind: EventToolCall, Name: c.name, Raw: raw, Arguments: json.RawMessage(pythonJSON(fitted))}
}

func (s toolSet) names() string {
	var out []string
	for n := range s {
		out = append(out, n)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
