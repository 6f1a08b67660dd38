package grep

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"atoll/tools-wasm/internal/guest"
)

// A matcher decides which lines match. Lines come without their end.
type matcher struct {
	re *regexp.Regexp // nil: finding is matching
	// need are texts of which every matching line contains one; nil: not known.
	need *finder
}

func newMatcher(pattern string, fold, literal bool) (*matcher, error) {
	if pattern == "" {
		return nil, &guest.ArgError{Arg: "pattern", Want: "expected a pattern, not an empty string"}
	}
	if strings.Contains(pattern, "\n") {
		return nil, &guest.ArgError{Arg: "pattern", Want: "a match lies within one line; search for one line of it"}
	}
	if literal {
		if f := newFinder([]string{pattern}, fold); f != nil && f.exact && !endsLine(pattern) {
			return &matcher{need: f}, nil
		}
		pattern = regexp.QuoteMeta(pattern)
	}
	expr := pattern
	if fold {
		expr = "(?i)" + pattern
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		cause := err.Error()
		var se *syntax.Error
		if e, ok := err.(*syntax.Error); ok {
			se = e
			cause = string(se.Code) + " at " + guest.Quote(se.Expr)
		}
		return nil, &guest.ArgError{Arg: "pattern", Want: "not a regular expression: " + cause + "; to search for it as plain text set literal to true"}
	}
	m := &matcher{re: re}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic("BUG: grep: pattern parsed once and not twice")
	}
	tree = tree.Simplify()
	if l := required(tree); l.texts != nil {
		m.need = newFinder(l.texts, l.fold)
		if m.need != nil && m.need.exact && l.whole && !endsLine(l.texts...) {
			m.re = nil
		}
	}
	return m, nil
}

// endsLine tells whether a text may be found in a line end, which is not part of the line.
func endsLine(texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, "\r") })
}

// find returns where the line matches first, or nil.
func (m *matcher) find(line []byte) []int {
	if m.re != nil {
		return m.re.FindIndex(line)
	}
	if at, n := m.need.index(line); at >= 0 {
		return []int{at, at + n}
	}
	return nil
}

// match tells whether the line matches, given that it contains one of need.
func (m *matcher) match(line []byte) bool { return m.re == nil || m.re.Match(line) }
