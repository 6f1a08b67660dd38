package guest

import (
	"strconv"
	"strings"
)

// Kind is the type of an argument.
type Kind uint8

// The kinds that arguments of built-in tools have.
const (
	String Kind = iota + 1
	Int
	Bool
)

func (k Kind) String() string {
	switch k {
	case String:
		return "string"
	case Int:
		return "integer"
	case Bool:
		return "boolean"
	}
	panic("BUG: guest: unknown kind of argument")
}

// A Param declares one argument. The schema that the model sees and the decoder are both made from it.
type Param struct {
	Name     string
	Kind     Kind
	Required bool
	Doc      string // description in the schema; empty: none
	Min, Max int    // range of an Int; both 0: any
}

// Args are decoded arguments: present keys are declared and have the declared kind.
type Args struct {
	params []Param
	values map[string]any // string, int or bool
}

// Has tells whether the argument was given.
func (a Args) Has(name string) bool {
	a.kind(name)
	_, ok := a.values[name]
	return ok
}

// String returns a string argument, "" when it was not given.
func (a Args) String(name string) string {
	a.check(name, String)
	s, _ := a.values[name].(string)
	return s
}

// Int returns an integer argument, or def when it was not given.
func (a Args) Int(name string, def int) int {
	a.check(name, Int)
	if n, ok := a.values[name].(int); ok {
		return n
	}
	return def
}

// Bool returns a boolean argument, false when it was not given.
func (a Args) Bool(name string) bool {
	a.check(name, Bool)
	b, _ := a.values[name].(bool)
	return b
}

func (a Args) kind(name string) Kind {
	for _, p := range a.params {
		if p.Name == name {
			return p.Kind
		}
	}
	panic("BUG: guest: argument " + name + " is not declared")
}

func (a Args) check(name string, want Kind) {
	if a.kind(name) != want {
		panic("BUG: guest: argument " + name + " is not a " + want.String())
	}
}

// Decode reads the arguments of the tool from one JSON object. Unknown, repeated, missing and
// mistyped arguments are an *ArgError. A null stands for an optional argument that is not given:
// models write it often. Whole numbers may be written as 3.0, as JSON Schema allows.
func (t *Tool) Decode(input []byte) (Args, error) {
	members, err := parseObject(input)
	if err != nil {
		return Args{}, err
	}
	args := Args{params: t.Params, values: make(map[string]any, len(members))}
	seen := make(map[string]bool, len(members))
	for _, m := range members {
		p := t.param(m.key)
		if p == nil {
			return Args{}, &ArgError{Arg: m.key, Want: "unknown; arguments are " + t.paramNames()}
		}
		if seen[m.key] {
			return Args{}, &ArgError{Arg: m.key, Want: "given twice"}
		}
		seen[m.key] = true
		if m.kind == kindNull && !p.Required {
			continue
		}
		v, err := p.value(m)
		if err != nil {
			return Args{}, err
		}
		args.values[m.key] = v
	}
	for _, p := range t.Params {
		if _, ok := args.values[p.Name]; p.Required && !ok {
			return Args{}, &ArgError{Arg: p.Name, Want: "missing, expected a " + p.Kind.String()}
		}
	}
	return args, nil
}

func (p *Param) value(m member) (any, error) {
	bad := func(want string) error { return &ArgError{Arg: p.Name, Want: want} }
	switch p.Kind {
	case String:
		if m.kind != kindString {
			return nil, bad("expected a string, not " + m.kind.describe())
		}
		return m.text, nil
	case Bool:
		if m.kind != kindBool {
			return nil, bad("expected true or false, not " + m.kind.describe())
		}
		return m.text == "true", nil
	case Int:
		if m.kind != kindNumber {
			return nil, bad("expected an integer, not " + m.kind.describe())
		}
		n, ok := wholeNumber(m.text)
		if !ok {
			return nil, bad("expected an integer, not " + clip(m.text, 40))
		}
		if (p.Min != 0 || p.Max != 0) && (n < p.Min || n > p.Max) {
			return nil, bad("expected an integer from " + strconv.Itoa(p.Min) + " to " + strconv.Itoa(p.Max))
		}
		return n, nil
	}
	panic("BUG: guest: unknown kind of argument")
}

// wholeNumber reads a JSON number that has an integer value within 53 bits.
func wholeNumber(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < -1<<53 || f > 1<<53 || f != float64(int64(f)) {
		return 0, false
	}
	return int(f), true
}

func (t *Tool) param(name string) *Param {
	for i := range t.Params {
		if t.Params[i].Name == name {
			return &t.Params[i]
		}
	}
	return nil
}

func (t *Tool) paramNames() string {
	names := make([]string, len(t.Params))
	for i, p := range t.Params {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// Schema returns the JSON Schema of the arguments in its shortest form: it is part of every prompt.
func (t *Tool) Schema() string {
	var b strings.Builder
	var required []string
	b.WriteString(`{"type":"object","properties":{`)
	for i, p := range t.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(jsonQuote(p.Name) + `:{"type":` + jsonQuote(p.Kind.String()))
		if p.Doc != "" {
			b.WriteString(`,"description":` + jsonQuote(p.Doc))
		}
		b.WriteByte('}')
		if p.Required {
			required = append(required, jsonQuote(p.Name))
		}
	}
	b.WriteString(`}`)
	if len(required) > 0 {
		b.WriteString(`,"required":[` + strings.Join(required, ",") + `]`)
	}
	b.WriteByte('}')
	return b.String()
}
