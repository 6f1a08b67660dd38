package chat

import "slices"

// tuple reads an expression, or several with commas between them. stop names
// words that end it.
func (p *parser) tuple(cond bool, stop []string) expr {
	line := at(p.cur().line)
	var items []expr
	for {
		if len(items) > 0 {
			if !p.skipOp(",") {
				break
			}
			if p.tupleEnds(stop) {
				return &listExpr{line, items, true}
			}
		}
		if cond {
			items = append(items, p.expression())
		} else {
			items = append(items, p.or())
		}
		if len(items) == 1 && !p.isOp(",") {
			return items[0]
		}
	}
	return &listExpr{line, items, true}
}

func (p *parser) tupleEnds(stop []string) bool {
	t := p.cur()
	switch t.kind {
	case tokPrintEnd, tokBlockEnd:
		return true
	case tokOp:
		return t.s == ")"
	case tokName:
		return slices.Contains(stop, t.s)
	}
	return false
}

// expression is a conditional expression or anything that binds tighter.
func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	// A filter under a condition is looked up only when it runs. Whether this is a
	// condition shows behind its first operand, hence the look ahead.
	if p.soft == 0 && p.conditional() {
		p.soft++
		defer func() { p.soft-- }()
	}
	x := p.or()
	for p.isName("if") {
		line := at(p.next().line)
		c := &condExpr{at: line, yes: x, cond: p.or()}
		if p.skipName("else") {
			c.no = p.expression()
		}
		x = c
	}
	return x
}

// conditional looks ahead, on one bracket level, for an "if".
func (p *parser) conditional() bool {
	level := 0
	for _, t := range p.toks[p.at:] {
		switch t.kind {
		case tokPrintEnd, tokBlockEnd, tokEOF:
			return false
		case tokName:
			if level == 0 && t.s == "if" {
				return true
			}
		case tokOp:
			switch t.s {
			case "(", "[", "{":
				level++
			case ")", "]", "}":
				if level--; level < 0 {
					return false
				}
			case ",":
				if level == 0 {
					return false
				}
			}
		}
	}
	return false
}

func (p *parser) or() expr {
	x := p.and()
	for p.isName("or") {
		line := at(p.next().line)
		x = &binExpr{line, "or", x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.isName("and") {
		line := at(p.next().line)
		x = &binExpr{line, "and", x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if !p.isName("not") {
		return p.compare()
	}
	p.enter()
	defer p.leave()
	line := at(p.next().line)
	return &notExpr{line, p.not()}
}

func (p *parser) compare() expr {
	line := at(p.cur().line)
	first := p.sum()
	c := &cmpExpr{at: line, first: first}
	for {
		t := p.cur()
		op := ""
		switch {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.s):
			op = t.s
		case t.kind == tokName && t.s == "in":
			op = "in"
		case t.kind == tokName && t.s == "not" && p.toks[p.at+1].kind == tokName && p.toks[p.at+1].s == "in":
			p.next()
			op = "not in"
		}
		if op == "" {
			break
		}
		p.next()
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
	if len(c.ops) == 0 {
		return first
	}
	return c
}

// binary reads a chain of operators of one level.
func (p *parser) binary(ops []string, operand func() expr) expr {
	x := operand()
	for n := 0; ; n++ {
		t := p.cur()
		if t.kind != tokOp || !slices.Contains(ops, t.s) {
			return x
		}
		p.next()
		x = &binExpr{at(t.line), t.s, x, operand()}
		if n > maxNesting {
			p.fail("more than %d operators in a row", maxNesting)
		}
	}
}

func (p *parser) sum() expr { return p.binary([]string{"+", "-"}, p.concat) }

func (p *parser) concat() expr {
	x := p.product()
	if !p.isOp("~") {
		return x
	}
	c := &concatExpr{at(x.pos()), []expr{x}}
	for p.skipOp("~") {
		c.parts = append(c.parts, p.product())
	}
	return c
}

func (p *parser) product() expr { return p.binary([]string{"*", "/", "//", "%"}, p.power) }

func (p *parser) power() expr {
	return p.binary([]string{"**"}, func() expr { return p.unary(true) })
}

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	t := p.cur()
	var x expr
	switch {
	case p.isOp("-"), p.isOp("+"):
		p.next()
		x = &negExpr{at(t.line), p.unary(false), t.s == "-"}
	default:
		x = p.primary()
	}
	x = p.postfix(x)
	if filters {
		x = p.filterExpr(x)
	}
	return x
}

func (p *parser) primary() expr {
	t := p.cur()
	line := at(t.line)
	switch t.kind {
	case tokName:
		p.next()
		switch t.s {
		case "true", "True":
			return &constExpr{line, boolean(true)}
		case "false", "False":
			return &constExpr{line, boolean(false)}
		case "none", "None":
			return &constExpr{line, none{}}
		case "else", "elif", "and", "or", "in", "is", "if": // a missing operand
			p.failAt(t.line, "unexpected '%s'", t.s)
		}
		if n := len(p.macros); n > 0 {
			m := p.macros[n-1]
			m.varargs = m.varargs || t.s == "varargs"
			m.kwargs = m.kwargs || t.s == "kwargs"
			m.caller = m.caller || t.s == "caller"
		}
		return &nameExpr{line, t.s}
	case tokString:
		s := ""
		for p.cur().kind == tokString {
			s += p.next().s
		}
		p.lits = append(p.lits, s)
		return &constExpr{line, lit(s)}
	case tokNumber:
		p.next()
		return &constExpr{line, t.num}
	case tokOp:
		switch t.s {
		case "(":
			p.next()
			if p.skipOp(")") {
				return &listExpr{line, nil, true}
			}
			x := p.tuple(true, nil)
			p.wantOp(")")
			return x
		case "[":
			p.next()
			l := &listExpr{at: line}
			for !p.skipOp("]") {
				if len(l.items) > 0 {
					p.wantOp(",")
					if p.skipOp("]") {
						break
					}
				}
				l.items = append(l.items, p.expression())
			}
			return l
		case "{":
			p.next()
			d := &dictExpr{at: line}
			for !p.skipOp("}") {
				if len(d.keys) > 0 {
					p.wantOp(",")
					if p.skipOp("}") {
						break
					}
				}
				d.keys = append(d.keys, p.expression())
				p.wantOp(":")
				d.vals = append(d.vals, p.expression())
			}
			return d
		}
	}
	p.fail("expected an expression, got %s", t.describe())
	return nil
}

// maxChain bounds how many subscripts, calls and filters follow one another.
const maxChain = 200

func (p *parser) postfix(x expr) expr {
	for n := 0; ; n++ {
		if n > maxChain {
			p.fail("more than %d subscripts in a row", maxChain)
		}
		switch {
		case p.isOp("."):
			line := at(p.next().line)
			t := p.next()
			switch t.kind {
			case tokName:
				x = &attrExpr{line, x, t.s}
			case tokNumber:
				x = &indexExpr{line, x, &constExpr{line, t.num}}
			default:
				p.failAt(t.line, "expected a name or number, got %s", t.describe())
			}
		case p.isOp("["):
			line := at(p.next().line)
			var subs []expr
			for !p.skipOp("]") {
				if len(subs) > 0 {
					p.wantOp(",")
				}
				subs = append(subs, p.subscript())
			}
			switch len(subs) {
			case 0:
				p.failAt(int(line), "expected a subscript expression")
			case 1:
				x = &indexExpr{line, x, subs[0]}
			default:
				x = &indexExpr{line, x, &listExpr{line, subs, true}}
			}
		case p.isOp("("):
			line := at(p.cur().line)
			x = &callExpr{line, x, p.args()}
		default:
			return x
		}
	}
}

func (p *parser) subscript() expr {
	s := &sliceExpr{at: at(p.cur().line)}
	if !p.isOp(":") {
		x := p.expression()
		if !p.isOp(":") {
			return x
		}
		s.from = x
	}
	p.wantOp(":")
	part := func() expr {
		if p.isOp("]") || p.isOp(",") || p.isOp(":") {
			return nil
		}
		return p.expression()
	}
	s.to = part()
	if p.skipOp(":") {
		s.step = part()
	}
	return s
}

func (p *parser) filterExpr(x expr) expr {
	for n := 0; ; n++ {
		if n > maxChain {
			p.fail("more than %d filters in a row", maxChain)
		}
		switch {
		case p.isOp("|"):
			x = p.filters(x, false)
		case p.isName("is"):
			x = p.test(x)
		case p.isOp("("):
			line := at(p.cur().line)
			x = &callExpr{line, x, p.args()}
		default:
			return x
		}
	}
}

// filters reads "| name(args)" as often as it stands there; with inline the first
// comes without the bar.
func (p *parser) filters(x expr, inline bool) expr {
	for n := 0; inline || p.skipOp("|"); n++ {
		if n > maxChain {
			p.fail("more than %d filters in a row", maxChain)
		}
		inline = false
		f := &filterExpr{at: at(p.cur().line), x: x, name: p.dotted()}
		if p.isOp("(") {
			f.args = p.args()
		}
		if p.soft == 0 && filterNamed(f.name) == nil {
			p.failAt(int(f.at), "no filter named '%s'", f.name)
		}
		x = f
	}
	return x
}

func (p *parser) dotted() string {
	name := p.wantName()
	for p.skipOp(".") {
		name += "." + p.wantName()
	}
	return name
}

func (p *parser) test(x expr) expr {
	line := at(p.next().line)
	negated := p.skipName("not")
	t := &testExpr{at: line, x: x, name: p.dotted()}
	c := p.cur()
	switch {
	case p.isOp("("):
		t.args = p.args()
	case p.isName("is"):
		p.fail("tests cannot be chained with 'is'")
	case c.kind == tokName && !slices.Contains([]string{"else", "or", "and", "if", "in", "not", "recursive"}, c.s),
		c.kind == tokString, c.kind == tokNumber, p.isOp("["), p.isOp("{"):
		t.args.pos = []expr{p.postfix(p.primary())}
	}
	if p.soft == 0 && testNamed(t.name) == nil {
		p.failAt(int(line), "no test named '%s'", t.name)
	}
	if negated {
		return &notExpr{line, t}
	}
	return t
}

func (p *parser) args() callArgs {
	var a callArgs
	line := p.cur().line
	p.wantOp("(")
	for n := 0; !p.skipOp(")"); n++ {
		if n > 0 {
			p.wantOp(",")
			if p.skipOp(")") {
				break
			}
		}
		switch {
		case p.skipOp("*"):
			if a.rest != nil || a.kwAll != nil {
				p.failAt(line, "invalid syntax of a call")
			}
			a.rest = p.expression()
		case p.skipOp("**"):
			if a.kwAll != nil {
				p.failAt(line, "invalid syntax of a call")
			}
			a.kwAll = p.expression()
		case p.cur().kind == tokName && p.toks[p.at+1].kind == tokOp && p.toks[p.at+1].s == "=":
			name := p.wantName()
			p.next()
			a.kw = append(a.kw, name)
			a.kwVals = append(a.kwVals, p.expression())
		default:
			if len(a.kw) > 0 || a.rest != nil || a.kwAll != nil {
				p.failAt(line, "invalid syntax of a call")
			}
			a.pos = append(a.pos, p.expression())
		}
	}
	return a
}
