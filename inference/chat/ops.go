package chat

import (
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
)

// maxBits bounds integers: Python's grow without bound, a template's need not.
const maxBits = 4096

// normInt is the smallest form of an integer.
func normInt(b *big.Int) Value {
	if b.IsInt64() {
		return integer(b.Int64())
	}
	return bigint{b}
}

// bigOf is an integer or boolean as a big integer.
func bigOf(v Value) (*big.Int, bool) {
	switch v := v.(type) {
	case boolean:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case integer:
		return big.NewInt(int64(v)), true
	case bigint:
		return v.Int, true
	}
	return nil, false
}

// intOf is an integer or boolean that fits an int.
func intOf(v Value) (int, bool) {
	switch v := v.(type) {
	case boolean:
		if v {
			return 1, true
		}
		return 0, true
	case integer:
		if int64(int(v)) == int64(v) {
			return int(v), true
		}
		return math.MaxInt, true
	case bigint:
		if v.Sign() < 0 {
			return math.MinInt + 1, true
		}
		return math.MaxInt, true
	}
	return 0, false
}

// floatOf is any number as a float.
func floatOf(v Value) (float64, bool) {
	switch v := v.(type) {
	case float:
		return float64(v), true
	case bigint:
		f, _ := new(big.Float).SetInt(v.Int).Float64()
		return f, true
	}
	if b, ok := bigOf(v); ok {
		return float64(b.Int64()), true
	}
	return 0, false
}

func (r *run) negate(v Value, neg bool, line int) Value {
	if f, ok := v.(float); ok {
		if neg {
			return -f
		}
		return f
	}
	b, ok := bigOf(v)
	if !ok {
		if u, ok := v.(undefined); ok {
			r.fail(line, "UndefinedError: %s", u.what)
		}
		r.fail(line, "TypeError: bad operand type for unary operator: '%s'", v.pyType())
	}
	if neg {
		return normInt(new(big.Int).Neg(b))
	}
	return normInt(new(big.Int).Set(b))
}

// arith is a binary arithmetic operator.
func (r *run) arith(op string, a, b Value, line int) Value {
	for _, v := range []Value{a, b} {
		if u, ok := v.(undefined); ok {
			r.fail(line, "UndefinedError: %s", u.what)
		}
	}
	if at, ok := a.(text); ok {
		if bt, ok := b.(text); ok && op == "+" {
			return r.concat(at, bt)
		}
		if op == "%" {
			return r.percent(at, b, line)
		}
	}
	if al, ok := a.(*List); ok && op == "+" {
		if bl, ok := b.(*List); ok && al.form == bl.form && al.form <= formTuple {
			r.charge(cellBytes * (len(al.items) + len(bl.items)))
			return &List{items: append(append([]Value(nil), al.items...), bl.items...), form: al.form}
		}
	}
	if op == "*" {
		if v := r.times(a, b); v != nil {
			return v
		}
		if v := r.times(b, a); v != nil {
			return v
		}
	}
	x, xok := bigOf(a)
	y, yok := bigOf(b)
	if xok && yok && op != "/" {
		if v := r.intArith(op, x, y, line); v != nil {
			return v
		}
	}
	f, fok := floatOf(a)
	g, gok := floatOf(b)
	if !fok || !gok {
		if _, ok := a.(text); ok && op == "+" {
			r.fail(line, "TypeError: can only concatenate str (not \"%s\") to str", b.pyType())
		}
		r.fail(line, "TypeError: unsupported operand type(s) for %s: '%s' and '%s'", op, a.pyType(), b.pyType())
	}
	switch op {
	case "+":
		return float(f + g)
	case "-":
		return float(f - g)
	case "*":
		return float(f * g)
	case "**":
		v := math.Pow(f, g)
		if math.IsNaN(v) || math.IsInf(v, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
			r.fail(line, "OverflowError: result of ** is out of range")
		}
		return float(v)
	}
	if g == 0 {
		r.fail(line, "ZeroDivisionError: division by zero")
	}
	switch op {
	case "/":
		return float(f / g)
	case "//":
		return float(math.Floor(f / g))
	}
	m := math.Mod(f, g)
	if m != 0 && (m < 0) != (g < 0) {
		m += g
	}
	return float(m)
}

// times is a sequence repeated, nil where a and b are not a sequence and a number.
func (r *run) times(a, b Value) Value {
	n, ok := intOf(b)
	if !ok {
		return nil
	}
	switch a := a.(type) {
	case text:
		return r.repeat(a, n)
	case *List:
		if a.form > formTuple {
			return nil
		}
		out := &List{form: a.form}
		if n <= 0 || len(a.items) == 0 {
			return out
		}
		r.chargeTimes(cellBytes*len(a.items), n)
		for range n {
			out.items = append(out.items, a.items...)
		}
		return out
	}
	return nil
}

// intArith is an operator on integers, nil where the result is not one.
func (r *run) intArith(op string, x, y *big.Int, line int) Value {
	z := new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "//", "%":
		if y.Sign() == 0 {
			r.fail(line, "ZeroDivisionError: integer division or modulo by zero")
		}
		// Python rounds down, big.Int.QuoRem towards zero.
		m := new(big.Int)
		z.QuoRem(x, y, m)
		if m.Sign() != 0 && (m.Sign() < 0) != (y.Sign() < 0) {
			z.Sub(z, big.NewInt(1))
			m.Add(m, y)
		}
		if op == "%" {
			z = m
		}
	case "**":
		if y.Sign() < 0 {
			return nil
		}
		if x.BitLen() > 1 && (!y.IsInt64() || y.Int64() > maxBits || int64(x.BitLen()-1)*y.Int64() > maxBits) {
			r.fail(line, "OverflowError: integer of more than %d bits", maxBits)
		}
		if x.BitLen() <= 1 && y.BitLen() > 1 { // 0, 1 or -1: only the parity counts
			y = big.NewInt(2 + int64(y.Bit(0)))
		}
		z.Exp(x, y, nil)
	}
	if z.BitLen() > maxBits {
		r.fail(line, "OverflowError: integer of more than %d bits", maxBits)
	}
	return normInt(z)
}

// compare is a comparison operator.
func (r *run) compare(op string, a, b Value, line int) bool {
	switch op {
	case "==":
		return r.equal(a, b, line)
	case "!=":
		return !r.equal(a, b, line)
	case "in":
		return r.contains(b, a, line)
	case "not in":
		return !r.contains(b, a, line)
	}
	c := r.order(op, a, b, line)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0 && c != unordered
	case ">=":
		return c >= 0 && c != unordered
	}
	panic("BUG: comparison " + op)
}

// unordered is what order gives for NaN; it makes every comparison false with
// the checks in compare (it is positive).
const unordered = 2

func isNumber(v Value) bool {
	switch v.(type) {
	case boolean, integer, bigint, float:
		return true
	}
	return false
}

// cmpNumbers compares two numbers exactly.
func cmpNumbers(a, b Value) int {
	x, xok := bigOf(a)
	y, yok := bigOf(b)
	if xok && yok {
		return x.Cmp(y)
	}
	f, _ := floatOf(a)
	g, _ := floatOf(b)
	switch {
	case f < g:
		return -1
	case f > g:
		return 1
	case f == g:
		return 0
	}
	return unordered
}

func (r *run) equal(a, b Value, line int) bool {
	r.enter(line)
	defer r.leave()
	if isNumber(a) && isNumber(b) {
		return cmpNumbers(a, b) == 0
	}
	switch a := a.(type) {
	case text:
		b, ok := b.(text)
		if !ok {
			return false
		}
		r.scan(min(len(a.s), len(b.s)))
		return a.s == b.s
	case none:
		_, ok := b.(none)
		return ok
	case undefined:
		_, ok := b.(undefined)
		return ok
	case *List:
		b, ok := b.(*List)
		if !ok || a.form != b.form || len(a.items) != len(b.items) {
			return false
		}
		for i := range a.items {
			if !r.equal(a.items[i], b.items[i], line) {
				return false
			}
		}
		return true
	case *Map:
		b, ok := b.(*Map)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for i := range a.keys {
			v, ok := b.get(a.hashes[i])
			if !ok || !r.equal(a.vals[i], v, line) {
				return false
			}
		}
		return true
	case *namespace, *function, *macro, *loopVar:
		return a == b
	}
	return false
}

// order compares two values for <, negative, zero or positive.
func (r *run) order(op string, a, b Value, line int) int {
	r.enter(line)
	defer r.leave()
	if isNumber(a) && isNumber(b) {
		return cmpNumbers(a, b)
	}
	switch a := a.(type) {
	case undefined:
		r.fail(line, "UndefinedError: %s", a.what)
	case text:
		if b, ok := b.(text); ok {
			r.scan(min(len(a.s), len(b.s)))
			return strings.Compare(a.s, b.s)
		}
	case *List:
		b, ok := b.(*List)
		if !ok || a.form != b.form {
			break
		}
		for i := range min(len(a.items), len(b.items)) {
			if !r.equal(a.items[i], b.items[i], line) {
				return r.order(op, a.items[i], b.items[i], line)
			}
		}
		return len(a.items) - len(b.items)
	}
	if u, ok := b.(undefined); ok {
		r.fail(line, "UndefinedError: %s", u.what)
	}
	r.fail(line, "TypeError: '%s' not supported between instances of '%s' and '%s'", op, a.pyType(), b.pyType())
	return 0
}

// contains is "v in c".
func (r *run) contains(c, v Value, line int) bool {
	switch c := c.(type) {
	case undefined:
		return false
	case text:
		t, ok := v.(text)
		if !ok {
			if u, ok := v.(undefined); ok {
				r.fail(line, "UndefinedError: %s", u.what)
			}
			r.fail(line, "TypeError: 'in <string>' requires string as left operand, not %s", v.pyType())
		}
		r.scan(len(c.s))
		return strings.Contains(c.s, t.s)
	case *Map:
		h, ok := r.hash(v)
		if !ok {
			return false
		}
		return c.find(h) >= 0
	case *List:
		for _, it := range c.items {
			if r.equal(it, v, line) {
				return true
			}
		}
		return false
	}
	r.fail(line, "TypeError: argument of type '%s' is not iterable", c.pyType())
	return false
}

// sortBy sorts indices by their keys, stably.
func (r *run) sortBy(order []int, line int, key func(int) Value, reverse bool) {
	r.charge(cellBytes * len(order))
	sort.SliceStable(order, func(i, j int) bool {
		a, b := key(order[i]), key(order[j])
		if reverse {
			a, b = b, a
		}
		return r.compare("<", a, b, line)
	})
}

// foldCase is the key under which Jinja2 compares without regard to case.
func foldCase(v Value) Value {
	if t, ok := v.(text); ok {
		return t.remade(strings.ToLower(t.s))
	}
	return v
}

// parseInt reads what Python's int(s, base) reads.
func parseInt(s string, base int) (Value, bool) {
	s = strings.TrimSpace(s)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "-"), "+")
	if len(s) > 2 && s[0] == '0' && base != 10 {
		if p := map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]|0x20]; p == base {
			s = s[2:]
		}
	}
	if s == "" || len(s) > maxNumberLen || strings.ContainsAny(s, "+-") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return nil, false
	}
	b, ok := new(big.Int).SetString(strings.ReplaceAll(s, "_", ""), base)
	if !ok {
		return nil, false
	}
	if neg {
		b.Neg(b)
	}
	return normInt(b), true
}

// parseFloat reads what Python's float(s) reads.
func parseFloat(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if len(s) > maxNumberLen || strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || !math.IsNaN(f) && math.IsInf(f, 0)
}

// intOfFloat truncates a float to an integer, as int(f).
func intOfFloat(f float64) (Value, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	b, _ := new(big.Float).SetFloat64(math.Trunc(f)).Int(nil)
	return normInt(b), true
}
