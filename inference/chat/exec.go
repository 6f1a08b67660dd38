package chat

import (
	"errors"
	"fmt"
	"time"
)

// ErrLimit is wrapped by the error of a template that ran into a limit of
// [ExecOptions].
var ErrLimit = errors.New("template limit reached")

// ExecOptions bounds one execution. Zero values mean the defaults.
type ExecOptions struct {
	// Now is what strftime_now formats. Zero: the Unix epoch in UTC, so that
	// a run that must be repeatable does not depend on the clock.
	Now time.Time
	// MaxSteps bounds the work: one for each node evaluated, and one for every 64
	// bytes looked at. Default 10 million (a few seconds at worst).
	MaxSteps int
	// MaxBytes bounds all text and list cells made on the way. Default 256 MiB.
	MaxBytes int
	// MaxOutput bounds the rendered text. Default 64 MiB.
	MaxOutput int
	// MaxDepth bounds nesting: expressions, statements, macro calls, values. Default 2000.
	MaxDepth int
}

func (o ExecOptions) withDefaults() ExecOptions {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MaxSteps, 10_000_000)
	def(&o.MaxBytes, 256<<20)
	def(&o.MaxOutput, 64<<20)
	def(&o.MaxDepth, 2000)
	if o.Now.IsZero() {
		o.Now = time.Unix(0, 0).UTC()
	}
	return o
}

// Execute renders the template over vars. It changes nothing that vars holds.
// The error is an *[Error].
func (t *Template) Execute(vars *Map, opts ExecOptions) (string, error) {
	out, err := t.execute(vars, opts)
	return out.s, err
}

// execute is Execute with the provenance of every byte.
func (t *Template) execute(vars *Map, opts ExecOptions) (out text, err error) {
	defer catch(&err)
	r := &run{opts: opts.withDefaults()}
	root := &scope{}
	for i, k := range vars.keys {
		if name, ok := k.(text); ok {
			root.set(name.s, r.copyValue(vars.vals[i]))
		}
	}
	b := &textBuilder{run: r}
	r.out = b
	r.stmts(t.body, &scope{parent: root}, b)
	return b.text(), nil
}

// run is the state of one execution.
type run struct {
	opts  ExecOptions
	steps int
	bytes int
	depth int
	out   *textBuilder
	line  int // of the last node entered, for errors without one
}

// cellBytes is what one list cell or map entry is charged: with the value in it and
// the slack of growing, about what it costs.
const cellBytes = 64

func (r *run) fail(line int, format string, a ...any) {
	if line == 0 {
		line = r.line
	}
	panic(&Error{Line: line, Msg: fmt.Sprintf(format, a...)})
}

func (r *run) exceed(what string, limit int) {
	panic(&Error{Line: r.line, Msg: fmt.Sprintf("%s (%d)", what, limit), limit: true})
}

// enter counts a step and a level of nesting; leave ends the level.
func (r *run) enter(line int) {
	if line != 0 {
		r.line = line
	}
	if r.steps++; r.steps > r.opts.MaxSteps {
		r.exceed("too many steps", r.opts.MaxSteps)
	}
	if r.depth++; r.depth > r.opts.MaxDepth {
		r.exceed("nested too deep", r.opts.MaxDepth)
	}
}

func (r *run) leave() { r.depth-- }

// charge accounts for n bytes made.
func (r *run) charge(n int) {
	if r.bytes += n; r.bytes > r.opts.MaxBytes {
		r.exceed("too much memory", r.opts.MaxBytes)
	}
	r.scan(n)
}

// chargeTimes accounts for n copies of size bytes, before they are made.
func (r *run) chargeTimes(size, n int) {
	if n > 0 && size > r.opts.MaxBytes/n {
		r.exceed("too much memory", r.opts.MaxBytes)
	}
	r.charge(size * n)
}

// scan accounts for looking at n bytes.
func (r *run) scan(n int) {
	if r.steps += n / 64; r.steps > r.opts.MaxSteps {
		r.exceed("too many steps", r.opts.MaxSteps)
	}
}

// scope holds variables. A lookup goes through the parents, an assignment does not.
type scope struct {
	parent *scope
	names  []string
	vals   []Value
	index  map[string]int // nil while there are few
}

func (s *scope) find(name string) int {
	if s.index != nil {
		if i, ok := s.index[name]; ok {
			return i
		}
		return -1
	}
	for i, n := range s.names {
		if n == name {
			return i
		}
	}
	return -1
}

func (s *scope) set(name string, v Value) {
	if i := s.find(name); i >= 0 {
		s.vals[i] = v
		return
	}
	s.names = append(s.names, name)
	s.vals = append(s.vals, v)
	if s.index != nil {
		s.index[name] = len(s.names) - 1
	} else if len(s.names) > smallMap {
		s.index = make(map[string]int, len(s.names))
		for i, n := range s.names {
			s.index[n] = i
		}
	}
}

func (r *run) lookup(sc *scope, name string) Value {
	for s := sc; s != nil; s = s.parent {
		if i := s.find(name); i >= 0 {
			return s.vals[i]
		}
	}
	if g := globalNamed(name); g != nil {
		return g
	}
	return undefined{fmt.Sprintf("'%s' is undefined", name)}
}

// flow is how a statement ended.
type flow uint8

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

func (r *run) stmts(list []stmt, sc *scope, out *textBuilder) flow {
	for _, s := range list {
		if f := r.stmt(s, sc, out); f != flowNext {
			return f
		}
	}
	return flowNext
}

func (r *run) stmt(s stmt, sc *scope, out *textBuilder) flow {
	r.enter(s.pos())
	defer r.leave()
	switch s := s.(type) {
	case *dataStmt:
		r.print(out, lit(s.s))
	case *printStmt:
		r.print(out, r.str(r.eval(s.x, sc), s.pos()))
	case *ifStmt:
		for i, c := range s.conds {
			if truth(r.eval(c, sc)) {
				return r.stmts(s.bodies[i], sc, out)
			}
		}
		return r.stmts(s.els, sc, out)
	case *forStmt:
		r.loop(s, r.eval(s.iter, sc), sc, out, 0)
	case *setStmt:
		r.assign(s.target, r.eval(s.x, sc), sc)
	case *setBlockStmt:
		v, f := r.capture(s.body, sc)
		if f != flowNext {
			return f
		}
		r.assign(s.target, r.filtered(s.filter, v, sc), sc)
	case *macroStmt:
		sc.set(s.name, &macro{s, sc})
	case *callStmt:
		f := r.eval(s.call.f, sc)
		a := r.args(&s.call.args, sc)
		a.kw = append(a.kw, kwarg{"caller", &macro{s.caller, sc}})
		r.print(out, r.str(r.call(f, a, s.pos()), s.pos()))
	case *filterStmt:
		v, f := r.capture(s.body, sc)
		if f != flowNext {
			return f
		}
		r.print(out, r.str(r.filtered(s.filter, v, sc), s.pos()))
	case *withStmt:
		inner := &scope{parent: sc}
		for i, t := range s.targets {
			r.assign(t, r.eval(s.vals[i], sc), inner)
		}
		return r.stmts(s.body, inner, out)
	case *scopeStmt:
		return r.stmts(s.body, &scope{parent: sc}, out)
	case *breakStmt:
		return flowBreak
	case *continueStmt:
		return flowContinue
	default:
		panic(fmt.Sprintf("BUG: statement %T", s))
	}
	return flowNext
}

// print adds to the output, which has a limit of its own.
func (r *run) print(out *textBuilder, t text) {
	if out.sb.Len()+len(t.s) > r.opts.MaxOutput {
		r.exceed("output too long", r.opts.MaxOutput)
	}
	out.add(t)
}

// capture runs a body and returns what it printed.
func (r *run) capture(body []stmt, sc *scope) (text, flow) {
	b := &textBuilder{run: r}
	f := r.stmts(body, &scope{parent: sc}, b)
	return b.text(), f
}

// filtered puts v through a chain of filters whose innermost operand is open.
func (r *run) filtered(f expr, v Value, sc *scope) Value {
	if f == nil {
		return v
	}
	fe := f.(*filterExpr)
	return r.filter(fe, r.filtered(fe.x, v, sc), sc)
}

func (r *run) assign(t *target, v Value, sc *scope) {
	switch {
	case t.list != nil:
		items := r.iterate(v, t.line)
		if len(items) != len(t.list) {
			r.fail(t.line, "ValueError: cannot unpack %d values into %d names", len(items), len(t.list))
		}
		for i, u := range t.list {
			r.assign(u, items[i], sc)
		}
	case t.ns != "":
		ns, ok := r.lookup(sc, t.ns).(*namespace)
		if !ok {
			r.fail(t.line, "cannot assign attribute on non-namespace object")
		}
		r.charge(cellBytes)
		ns.vars.Set(t.name, v)
	default:
		sc.set(t.name, v)
	}
}

// loopVar is the variable "loop".
type loopVar struct {
	node  *forStmt
	sc    *scope
	items []Value
	at    int
	depth int
	// last is the argument of the last call of loop.changed.
	last []Value
}

func (*loopVar) pyType() string { return "LoopContext" }

func (r *run) loop(s *forStmt, over Value, sc *scope, out *textBuilder, depth int) {
	items := r.iterate(over, s.iter.pos())
	if s.cond != nil {
		var keep []Value
		for _, it := range items {
			inner := &scope{parent: sc}
			r.assign(s.target, it, inner)
			if truth(r.eval(s.cond, inner)) {
				keep = append(keep, it)
			}
		}
		r.charge(cellBytes * len(keep))
		items = keep
	}
	if len(items) == 0 {
		r.stmts(s.els, &scope{parent: sc}, out)
		return
	}
	l := &loopVar{node: s, sc: sc, items: items, depth: depth}
	for i, it := range items {
		r.enter(s.pos())
		l.at = i
		inner := &scope{parent: sc}
		inner.set("loop", l)
		r.assign(s.target, it, inner)
		f := r.stmts(s.body, inner, out)
		r.leave()
		if f == flowBreak {
			return
		}
	}
}

// attr is an attribute of loop, nil where there is none.
func (l *loopVar) attr(name string) Value {
	n := integer(len(l.items))
	i := integer(l.at)
	switch name {
	case "index":
		return i + 1
	case "index0":
		return i
	case "revindex":
		return n - i
	case "revindex0":
		return n - i - 1
	case "first":
		return boolean(i == 0)
	case "last":
		return boolean(i == n-1)
	case "length":
		return n
	case "depth":
		return integer(l.depth + 1)
	case "depth0":
		return integer(l.depth)
	case "previtem":
		if l.at == 0 {
			return undefined{"there is no previous item"}
		}
		return l.items[l.at-1]
	case "nextitem":
		if l.at+1 == len(l.items) {
			return undefined{"there is no next item"}
		}
		return l.items[l.at+1]
	case "cycle":
		return &function{"cycle", func(r *run, line int, a args) Value {
			if len(a.pos) == 0 {
				r.fail(line, "TypeError: no items for cycling given")
			}
			return a.pos[l.at%len(a.pos)]
		}}
	case "changed":
		return &function{"changed", func(r *run, line int, a args) Value {
			if l.last != nil && r.equal(tuple(l.last...), tuple(a.pos...), line) {
				return boolean(false)
			}
			l.last = append([]Value{}, a.pos...)
			return boolean(true)
		}}
	}
	return nil
}

// macro is a macro with the scope it was made in.
type macro struct {
	node *macroStmt
	sc   *scope
}

func (*macro) pyType() string { return "Macro" }

// callMacro binds the arguments and runs the body.
func (r *run) callMacro(m *macro, a args, line int) Value {
	r.enter(line)
	defer r.leave()
	n := m.node
	sc := &scope{parent: m.sc}
	bound := make([]Value, len(n.params))
	copy(bound, a.pos)
	extraKw := NewMap()
	var caller Value
	for _, k := range a.kw {
		i := -1
		for j, p := range n.params {
			if p == k.name {
				i = j
			}
		}
		switch {
		case i >= 0 && bound[i] != nil:
			r.fail(line, "TypeError: macro '%s' got two values for argument '%s'", n.name, k.name)
		case i >= 0:
			bound[i] = k.v
		case k.name == "caller" && n.caller:
			caller = k.v
		case n.kwargs:
			extraKw.Set(k.name, k.v)
		default:
			r.fail(line, "TypeError: macro '%s' takes no keyword argument '%s'", n.name, k.name)
		}
	}
	if len(a.pos) > len(n.params) && !n.varargs {
		r.fail(line, "TypeError: macro '%s' takes not more than %d argument(s)", n.name, len(n.params))
	}
	for i, p := range n.params {
		v := bound[i]
		if v == nil {
			if n.defaults[i] != nil {
				v = r.eval(n.defaults[i], sc)
			} else {
				v = undefined{fmt.Sprintf("parameter '%s' was not provided", p)}
			}
		}
		sc.set(p, v)
	}
	if n.varargs {
		sc.set("varargs", tuple(a.pos[min(len(n.params), len(a.pos)):]...))
	}
	if n.kwargs {
		sc.set("kwargs", extraKw)
	}
	if n.caller {
		if caller == nil {
			caller = undefined{"no caller defined"}
		}
		sc.set("caller", caller)
	}
	b := &textBuilder{run: r}
	r.stmts(n.body, sc, b)
	return b.text()
}
