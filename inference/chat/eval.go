package chat

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// args are the evaluated arguments of a call.
type args struct {
	pos []Value
	kw  []kwarg
}

type kwarg struct {
	name string
	v    Value
}

// bind puts the arguments in the order of the parameter names. Missing ones are
// nil.
func (a args) bind(r *run, line int, what string, params ...string) []Value {
	out := make([]Value, len(params))
	if len(a.pos) > len(params) {
		r.fail(line, "TypeError: %s takes at most %d argument(s), %d given", what, len(params), len(a.pos))
	}
	copy(out, a.pos)
next:
	for _, k := range a.kw {
		for i, p := range params {
			if p == k.name {
				if out[i] != nil {
					r.fail(line, "TypeError: %s got two values for argument '%s'", what, p)
				}
				out[i] = k.v
				continue next
			}
		}
		r.fail(line, "TypeError: %s got an unexpected keyword argument '%s'", what, k.name)
	}
	return out
}

func (r *run) args(c *callArgs, sc *scope) args {
	var a args
	for _, x := range c.pos {
		a.pos = append(a.pos, r.eval(x, sc))
	}
	for i, x := range c.kwVals {
		a.kw = append(a.kw, kwarg{c.kw[i], r.eval(x, sc)})
	}
	if c.rest != nil {
		items := r.iterate(r.eval(c.rest, sc), c.rest.pos())
		r.charge(cellBytes * len(items))
		a.pos = append(a.pos, items...)
	}
	if c.kwAll != nil {
		m, ok := r.eval(c.kwAll, sc).(*Map)
		if !ok {
			r.fail(c.kwAll.pos(), "TypeError: argument after ** must be a mapping")
		}
		for i, k := range m.keys {
			name, ok := k.(text)
			if !ok {
				r.fail(c.kwAll.pos(), "TypeError: keywords must be strings")
			}
			a.kw = append(a.kw, kwarg{name.s, m.vals[i]})
		}
	}
	return a
}

func (r *run) eval(x expr, sc *scope) Value {
	line := x.pos()
	r.enter(line)
	defer r.leave()
	switch x := x.(type) {
	case *constExpr:
		return x.v
	case *nameExpr:
		return r.lookup(sc, x.name)
	case *listExpr:
		l := &List{items: make([]Value, len(x.items))}
		if x.tuple {
			l.form = formTuple
		}
		r.charge(cellBytes * len(x.items))
		for i, it := range x.items {
			l.items[i] = r.eval(it, sc)
		}
		return l
	case *dictExpr:
		m := NewMap()
		for i, k := range x.keys {
			r.put(m, r.eval(k, sc), r.eval(x.vals[i], sc), line)
		}
		return m
	case *notExpr:
		return boolean(!truth(r.eval(x.x, sc)))
	case *negExpr:
		return r.negate(r.eval(x.x, sc), x.neg, line)
	case *binExpr:
		l := r.eval(x.l, sc)
		switch x.op {
		case "and":
			if !truth(l) {
				return l
			}
			return r.eval(x.r, sc)
		case "or":
			if truth(l) {
				return l
			}
			return r.eval(x.r, sc)
		}
		return r.arith(x.op, l, r.eval(x.r, sc), line)
	case *concatExpr:
		b := textBuilder{run: r}
		for _, p := range x.parts {
			b.add(r.str(r.eval(p, sc), line))
		}
		return b.text()
	case *cmpExpr:
		l := r.eval(x.first, sc)
		for i, op := range x.ops {
			rt := r.eval(x.rest[i], sc)
			if !r.compare(op, l, rt, line) {
				return boolean(false)
			}
			l = rt
		}
		return boolean(true)
	case *condExpr:
		if truth(r.eval(x.cond, sc)) {
			return r.eval(x.yes, sc)
		}
		if x.no == nil {
			return undefined{"the inline if-expression evaluated to false and no else section was defined"}
		}
		return r.eval(x.no, sc)
	case *attrExpr:
		return r.attribute(r.eval(x.x, sc), x.name, line)
	case *indexExpr:
		v := r.eval(x.x, sc)
		if s, ok := x.i.(*sliceExpr); ok {
			part := func(e expr) Value {
				if e == nil {
					return none{}
				}
				return r.eval(e, sc)
			}
			return r.slice(v, part(s.from), part(s.to), part(s.step), line)
		}
		return r.index(v, r.eval(x.i, sc), line)
	case *callExpr:
		f := r.eval(x.f, sc)
		return r.call(f, r.args(&x.args, sc), line)
	case *filterExpr:
		return r.filter(x, r.eval(x.x, sc), sc)
	case *testExpr:
		v := r.eval(x.x, sc)
		t := testNamed(x.name)
		if t == nil {
			r.fail(line, "no test named '%s'", x.name)
		}
		return boolean(t(r, line, v, r.args(&x.args, sc)))
	case *sliceExpr:
		r.fail(line, "a slice within a tuple is not supported")
	}
	panic(fmt.Sprintf("BUG: expression %T", x))
}

func (r *run) filter(x *filterExpr, v Value, sc *scope) Value {
	f := filterNamed(x.name)
	if f == nil {
		r.fail(x.pos(), "no filter named '%s'", x.name)
	}
	return f(r, x.pos(), v, r.args(&x.args, sc))
}

func (r *run) call(f Value, a args, line int) Value {
	r.enter(line)
	defer r.leave()
	switch f := f.(type) {
	case *function:
		return f.call(r, line, a)
	case *macro:
		return r.callMacro(f, a, line)
	case *loopVar:
		if !f.node.recursive {
			r.fail(line, "TypeError: the loop must have the 'recursive' marker to be called")
		}
		over := a.bind(r, line, "loop", "iterable")[0]
		if over == nil {
			r.fail(line, "TypeError: loop takes one argument")
		}
		b := &textBuilder{run: r}
		r.loop(f.node, over, f.sc, b, f.depth+1)
		return b.text()
	case undefined:
		r.fail(line, "UndefinedError: %s", f.what)
	}
	r.fail(line, "TypeError: '%s' object is not callable", f.pyType())
	return nil
}

// put sets a key of a map.
func (r *run) put(m *Map, k, v Value, line int) {
	h, ok := r.hash(k)
	if !ok {
		r.fail(line, "TypeError: unhashable type: '%s'", k.pyType())
	}
	r.charge(2 * cellBytes)
	m.set(h, k, v)
}

// objectName is what Jinja2 calls a value whose attribute is missing.
func objectName(v Value) string {
	if _, ok := v.(none); ok {
		return "'None'"
	}
	return "'" + v.pyType() + " object'"
}

// attribute is x.name: an attribute or method first, an item second.
func (r *run) attribute(v Value, name string, line int) Value {
	if u, ok := v.(undefined); ok {
		r.fail(line, "UndefinedError: %s", u.what)
	}
	if strings.HasPrefix(name, "__") {
		r.fail(line, "SecurityError: access to attribute '%s' of '%s' object is unsafe.", name, v.pyType())
	}
	if a := r.member(v, name); a != nil {
		return a
	}
	if m, ok := v.(*Map); ok {
		if it, ok := m.Get(name); ok {
			return it
		}
	}
	return undefined{fmt.Sprintf("%s has no attribute '%s'", objectName(v), name)}
}

// member is an attribute or method of v, nil where it has none of that name.
func (r *run) member(v Value, name string) Value {
	switch v := v.(type) {
	case text:
		if f := strMethod(name); f != nil {
			return &function{name, func(r *run, line int, a args) Value { return f(r, line, v, a) }}
		}
	case *Map:
		if f := mapMethod(name); f != nil {
			return &function{name, func(r *run, line int, a args) Value { return f(r, line, v, a) }}
		}
	case *List:
		if v.group && name == "grouper" {
			return v.items[0]
		}
		if v.group && name == "list" {
			return v.items[1]
		}
		if f := listMethod(name, v.form); f != nil {
			return &function{name, func(r *run, line int, a args) Value { return f(r, line, v, a) }}
		}
	case *namespace:
		if it, ok := v.vars.Get(name); ok {
			return it
		}
	case *loopVar:
		return v.attr(name)
	case *macro:
		switch name {
		case "name":
			return lit(v.node.name)
		case "arguments":
			l := tuple()
			for _, p := range v.node.params {
				l.Append(lit(p))
			}
			return l
		}
	}
	return nil
}

// index is x[i]: an item first, an attribute second.
func (r *run) index(v, i Value, line int) Value {
	name, isName := i.(text)
	switch v := v.(type) {
	case undefined:
		r.fail(line, "UndefinedError: %s", v.what)
	case *Map:
		if h, ok := r.hash(i); ok {
			if it, ok := v.get(h); ok {
				return it
			}
		}
	case *List:
		if n, ok := intOf(i); ok {
			if n < 0 {
				n += len(v.items)
			}
			if n >= 0 && n < len(v.items) {
				return v.items[n]
			}
		}
	case text:
		if n, ok := intOf(i); ok {
			if c, ok := r.charAt(v, n); ok {
				return c
			}
		}
	}
	if isName && !strings.HasPrefix(name.s, "__") {
		if a := r.member(v, name.s); a != nil {
			return a
		}
	}
	if isName {
		return undefined{fmt.Sprintf("%s has no attribute '%s'", objectName(v), name.s)}
	}
	what := r.repr(i, line).s
	return undefined{fmt.Sprintf("%s has no element %s", objectName(v), what)}
}

// charAt is the n-th character, counted from the end where n is negative.
func (r *run) charAt(t text, n int) (text, bool) {
	if isASCII(t.s) {
		if n < 0 {
			n += len(t.s)
		}
		if n < 0 || n >= len(t.s) {
			return text{}, false
		}
		return t.slice(n, n+1), true
	}
	r.scan(len(t.s))
	at := runeOffsets(t.s)
	if n < 0 {
		n += len(at) - 1
	}
	if n < 0 || n >= len(at)-1 {
		return text{}, false
	}
	return t.slice(at[n], at[n+1]), true
}

// runeOffsets are the offsets at which characters start, and the length.
func runeOffsets(s string) []int {
	at := make([]int, 0, utf8.RuneCountInString(s)+1)
	for i := range s {
		at = append(at, i)
	}
	return append(at, len(s))
}

// slice is x[from:to:step].
func (r *run) slice(v, from, to, step Value, line int) Value {
	st := 1
	if _, ok := step.(none); !ok {
		n, ok := intOf(step)
		if !ok {
			r.fail(line, "TypeError: slice indices must be integers or None")
		}
		if n == 0 {
			r.fail(line, "ValueError: slice step cannot be zero")
		}
		st = n
	}
	bounds := func(n int) (int, int) {
		lo, hi := 0, n
		if st < 0 {
			lo, hi = n-1, -1
		}
		limit := func(v Value, d int) int {
			if _, ok := v.(none); ok {
				return d
			}
			i, ok := intOf(v)
			if !ok {
				r.fail(line, "TypeError: slice indices must be integers or None")
			}
			if i < 0 {
				i += n
			}
			if st < 0 {
				return max(-1, min(i, n-1))
			}
			return max(0, min(i, n))
		}
		return limit(from, lo), limit(to, hi)
	}
	switch v := v.(type) {
	case undefined:
		r.fail(line, "UndefinedError: %s", v.what)
	case *List:
		a, b := bounds(len(v.items))
		out := &List{form: v.form}
		if st == 1 {
			if a < b {
				r.charge(cellBytes * (b - a))
				out.items = append(out.items, v.items[a:b]...)
			}
			return out
		}
		for i := a; st > 0 && i < b || st < 0 && i > b; i += st {
			r.charge(cellBytes)
			out.items = append(out.items, v.items[i])
			if i > len(v.items)-st && st > 0 { // the next index would wrap around
				break
			}
		}
		return out
	case text:
		var at []int
		n := len(v.s)
		if !isASCII(v.s) {
			r.charge(8 * len(v.s))
			at = runeOffsets(v.s)
			n = len(at) - 1
		}
		off := func(i int) int {
			if at == nil {
				return i
			}
			return at[i]
		}
		a, b := bounds(n)
		if st == 1 {
			if a >= b {
				return text{}
			}
			r.scan(off(b) - off(a))
			return v.slice(off(a), off(b))
		}
		out := textBuilder{run: r}
		for i := a; st > 0 && i < b || st < 0 && i > b; i += st {
			out.add(v.slice(off(i), off(i+1)))
			if i > n-st && st > 0 {
				break
			}
		}
		return out.text()
	}
	// Jinja2 turns a subscript that Python refuses into undefined.
	return undefined{fmt.Sprintf("%s cannot be sliced", objectName(v))}
}

// iterate is the items of anything that can be looped over.
func (r *run) iterate(v Value, line int) []Value {
	switch v := v.(type) {
	case undefined:
		return nil
	case *List:
		return v.items
	case *Map:
		return v.keys
	case text:
		r.chargeTimes(cellBytes+8, len(v.s))
		out := make([]Value, 0, len(v.s))
		for i, c := range v.s {
			n := utf8.RuneLen(c)
			if c == utf8.RuneError {
				_, n = utf8.DecodeRuneInString(v.s[i:])
			}
			out = append(out, v.slice(i, i+n))
		}
		return out
	}
	r.fail(line, "TypeError: '%s' object is not iterable", v.pyType())
	return nil
}
