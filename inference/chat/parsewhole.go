package chat

import (
	"errors"
	"fmt"
)

// ErrUnsupported is wrapped where a family of tool calls is known but has no parser
// here.
var ErrUnsupported = errors.New("not supported")

// ParseWhole parses a whole answer of a model of the given family (see
// [Format.Family]).
func ParseWhole(family, raw string, tools []Tool) (Answer, error) {
	known := false
	for _, f := range families {
		known = known || f.name == family
	}
	if !known {
		return Answer{}, fmt.Errorf("parse answer: unknown family %q", family)
	}
	if !builtFamily(family) {
		return Answer{}, fmt.Errorf("parse answer: tool calls of family %q: %w", family, ErrUnsupported)
	}
	p := newParser(tools, true)
	return Collect(append(p.Push(raw), p.Close()...)), nil
}
