package chat

import (
	"fmt"
	"slices"
	"strings"
)

// Template is a parsed chat template.
type Template struct {
	body []stmt
	lits []string // literal text and strings in it
}

// Error is a fault of a template: its own, or one that happened while it ran.
type Error struct {
	Line int
	Msg  string
	// Raised says that the template itself called raise_exception; Msg is its message.
	Raised bool
	limit  bool
}

func (e *Error) Error() string { return fmt.Sprintf("template line %d: %s", e.Line, e.Msg) }

// Unwrap makes errors.Is(err, ErrLimit) true where a limit ended the run.
func (e *Error) Unwrap() error {
	if e.limit {
		return ErrLimit
	}
	return nil
}

// maxNesting bounds how deep expressions and statements nest in a template's source.
const maxNesting = 200

// Parse reads a template. The error is an *[Error] that names the construct and
// its line; what Jinja2 has and this engine lacks (include, import, extends,
// super, autoescape, i18n) is an error here, not when it runs.
func Parse(src string) (t *Template, err error) {
	defer catch(&err)
	p := &parser{toks: lex(src)}
	body := p.body()
	return &Template{body: body, lits: p.lits}, nil
}

// catch turns the panic that ends parsing or execution into an error. Anything
// that is not an *Error is a bug and goes on.
func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		*err = e
	default:
		panic(e)
	}
}

type parser struct {
	toks   []token
	at     int
	depth  int
	soft   int // inside if and conditional expressions: unknown filters fail only when they run
	loops  int
	macros []*macroStmt
	lits   []string
	ends   []string // what the innermost open block waits for
	open   int      // line of the tag that opened it
}

func (p *parser) cur() token { return p.toks[p.at] }

func (p *parser) next() token {
	t := p.toks[p.at]
	if t.kind != tokEOF {
		p.at++
	}
	return t
}

func (p *parser) fail(format string, a ...any) {
	p.failAt(p.cur().line, format, a...)
}

func (p *parser) failAt(line int, format string, a ...any) {
	panic(&Error{Line: line, Msg: fmt.Sprintf(format, a...)})
}

func (p *parser) enter() {
	p.depth++
	if p.depth > maxNesting {
		p.fail("nested deeper than %d", maxNesting)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) isOp(s string) bool   { t := p.cur(); return t.kind == tokOp && t.s == s }
func (p *parser) isName(s string) bool { t := p.cur(); return t.kind == tokName && t.s == s }

func (p *parser) skipOp(s string) bool {
	if p.isOp(s) {
		p.at++
		return true
	}
	return false
}

func (p *parser) skipName(s string) bool {
	if p.isName(s) {
		p.at++
		return true
	}
	return false
}

func (p *parser) wantOp(s string) {
	if !p.skipOp(s) {
		p.fail("expected '%s', got %s", s, p.cur().describe())
	}
}

func (p *parser) wantName() string {
	if p.cur().kind != tokName {
		p.fail("expected a name, got %s", p.cur().describe())
	}
	return p.next().s
}

func (p *parser) want(k tokenKind) {
	if p.cur().kind != k {
		p.fail("expected %s, got %s", token{kind: k}.describe(), p.cur().describe())
	}
	p.next()
}

// body reads statements up to one of the end tags, whose name stays current.
func (p *parser) body(ends ...string) []stmt {
	p.enter()
	defer p.leave()
	line, outer := p.open, p.ends
	p.ends = ends
	defer func() { p.ends = outer }()
	var out []stmt
	for {
		t := p.next()
		switch t.kind {
		case tokEOF:
			if len(ends) > 0 {
				p.failAt(line, "unexpected end of template: looking for '%s'", strings.Join(ends, "' or '"))
			}
			return out
		case tokData:
			p.lits = append(p.lits, t.s)
			out = append(out, &dataStmt{at(t.line), t.s})
		case tokPrintBegin:
			x := p.tuple(true, nil)
			p.want(tokPrintEnd)
			out = append(out, &printStmt{at(t.line), x})
		case tokBlockBegin:
			if c := p.cur(); c.kind == tokName && slices.Contains(ends, c.s) {
				return out
			}
			out = append(out, p.statement())
			p.want(tokBlockEnd)
		default:
			panic("BUG: token outside of a tag: " + t.describe())
		}
	}
}

// block reads the end of the opening tag and a body up to one of the end tags.
// The name of the tag found is consumed and returned.
func (p *parser) block(ends ...string) ([]stmt, string) {
	p.want(tokBlockEnd)
	b := p.body(ends...)
	return b, p.next().s
}

func (p *parser) statement() stmt {
	t := p.cur()
	if t.kind != tokName {
		p.fail("tag name expected, got %s", t.describe())
	}
	p.next()
	a := at(t.line)
	p.open = t.line
	switch t.s {
	case "if":
		return p.ifStatement(a)
	case "for":
		return p.forStatement(a)
	case "set":
		return p.setStatement(a)
	case "macro":
		m := &macroStmt{at: a, name: p.wantName()}
		p.signature(m)
		p.macroBody(m, "endmacro")
		return m
	case "call":
		m := &macroStmt{at: a, name: "caller"}
		if p.isOp("(") {
			p.signature(m)
		}
		c, ok := p.expression().(*callExpr)
		if !ok {
			p.failAt(t.line, "call block needs a call")
		}
		p.macroBody(m, "endcall")
		return &callStmt{a, c, m}
	case "filter":
		f := p.filters(nil, true)
		body, _ := p.block("endfilter")
		return &filterStmt{a, f, body}
	case "with":
		w := &withStmt{at: a}
		for p.cur().kind != tokBlockEnd {
			if len(w.vals) > 0 {
				p.wantOp(",")
			}
			w.targets = append(w.targets, p.target(false))
			p.wantOp("=")
			w.vals = append(w.vals, p.expression())
		}
		w.body, _ = p.block("endwith")
		return w
	case "generation":
		body, _ := p.block("endgeneration")
		return &scopeStmt{a, body}
	case "block":
		name := p.wantName()
		for p.cur().kind == tokName { // scoped, required
			p.next()
		}
		body, _ := p.block("endblock")
		p.skipName(name)
		return &scopeStmt{a, body}
	case "break", "continue":
		if p.loops == 0 {
			p.failAt(t.line, "'%s' outside of a loop", t.s)
		}
		if t.s == "break" {
			return &breakStmt{a}
		}
		return &continueStmt{a}
	case "include", "import", "from", "extends", "autoescape", "trans", "do", "debug":
		p.failAt(t.line, "tag '%s' is not supported", t.s)
	}
	if len(p.ends) > 0 {
		p.failAt(t.line, "unknown tag '%s': looking for '%s'", t.s, strings.Join(p.ends, "' or '"))
	}
	p.failAt(t.line, "unknown tag '%s'", t.s)
	return nil
}

func (p *parser) ifStatement(a at) stmt {
	p.soft++
	defer func() { p.soft-- }()
	s := &ifStmt{at: a}
	for {
		s.conds = append(s.conds, p.tuple(false, nil))
		body, end := p.block("elif", "else", "endif")
		s.bodies = append(s.bodies, body)
		switch end {
		case "elif":
			continue
		case "else":
			s.els, _ = p.block("endif")
		}
		return s
	}
}

func (p *parser) forStatement(a at) stmt {
	s := &forStmt{at: a, target: p.targets("in")}
	if !p.skipName("in") {
		p.fail("expected 'in', got %s", p.cur().describe())
	}
	s.iter = p.tuple(false, []string{"recursive"})
	if p.skipName("if") {
		s.cond = p.expression()
	}
	s.recursive = p.skipName("recursive")
	p.loops++
	body, end := p.block("endfor", "else")
	p.loops--
	s.body = body
	if end == "else" {
		s.els, _ = p.block("endfor")
	}
	return s
}

func (p *parser) setStatement(a at) stmt {
	t := p.targets("")
	if p.skipOp("=") {
		return &setStmt{a, t, p.tuple(true, nil)}
	}
	s := &setBlockStmt{at: a, target: t}
	if p.isOp("|") {
		s.filter = p.filters(nil, false)
	}
	s.body, _ = p.block("endset")
	return s
}

func (p *parser) macroBody(m *macroStmt, end string) {
	loops := p.loops
	p.loops = 0
	p.macros = append(p.macros, m)
	m.body, _ = p.block(end)
	p.macros = p.macros[:len(p.macros)-1]
	p.loops = loops
}

func (p *parser) signature(m *macroStmt) {
	p.wantOp("(")
	for !p.skipOp(")") {
		if len(m.params) > 0 {
			p.wantOp(",")
		}
		m.params = append(m.params, p.wantName())
		var d expr
		if p.skipOp("=") {
			d = p.expression()
		} else if n := len(m.defaults); n > 0 && m.defaults[n-1] != nil {
			p.fail("parameter without a default behind one with a default")
		}
		m.defaults = append(m.defaults, d)
	}
}

// target reads one name to assign to.
func (p *parser) target(namespaces bool) *target {
	line := p.cur().line
	if p.skipOp("(") {
		t := p.targets(")")
		p.wantOp(")")
		return t
	}
	t := &target{line: line, name: p.wantName()}
	switch t.name {
	case "true", "false", "none", "True", "False", "None":
		p.failAt(line, "cannot assign to '%s'", t.name)
	}
	if namespaces && p.skipOp(".") {
		t.ns = t.name
		t.name = p.wantName()
	}
	return t
}

// targets reads a target or several with commas between them.
func (p *parser) targets(end string) *target {
	p.enter()
	defer p.leave()
	t := p.target(end == "")
	if !p.isOp(",") {
		return t
	}
	l := &target{line: t.line, list: []*target{t}}
	for p.skipOp(",") {
		if p.isOp("=") || p.isOp(")") || end != "" && p.isName(end) {
			break
		}
		l.list = append(l.list, p.target(end == ""))
	}
	return l
}
