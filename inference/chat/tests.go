package chat

import (
	"math/big"
	"strings"
)

// testFunc is a test: v is name(a).
type testFunc func(r *run, line int, v Value, a args) bool

// testNamed is the test of that name, nil where there is none.
func testNamed(name string) testFunc {
	switch name {
	case "==", "eq", "equalto":
		return comparison("==")
	case "!=", "ne":
		return comparison("!=")
	case "<", "lt", "lessthan":
		return comparison("<")
	case "<=", "le":
		return comparison("<=")
	case ">", "gt", "greaterthan":
		return comparison(">")
	case ">=", "ge":
		return comparison(">=")
	case "in":
		return comparison("in")
	case "boolean":
		return typeTest(func(v Value) bool { _, ok := v.(boolean); return ok })
	case "callable":
		return typeTest(func(v Value) bool {
			switch v.(type) {
			case *function, *macro, *loopVar:
				return true
			}
			return false
		})
	case "defined":
		return typeTest(func(v Value) bool { _, ok := v.(undefined); return !ok })
	case "undefined":
		return typeTest(func(v Value) bool { _, ok := v.(undefined); return ok })
	case "divisibleby":
		return func(r *run, line int, v Value, a args) bool {
			n := a.bind(r, line, name, "num")[0]
			if n == nil {
				r.fail(line, "TypeError: divisibleby needs a number")
			}
			return r.equal(r.arith("%", v, n, line), integer(0), line)
		}
	case "escaped":
		return typeTest(func(Value) bool { return false })
	case "even", "odd":
		return func(r *run, line int, v Value, a args) bool {
			b, ok := bigOf(v)
			if !ok {
				return r.equal(r.arith("%", v, integer(2), line), integer(map[string]int{"even": 0, "odd": 1}[name]), line)
			}
			return (new(big.Int).Abs(b).Bit(0) == 0) == (name == "even")
		}
	case "false":
		return typeTest(func(v Value) bool { return v == boolean(false) })
	case "true":
		return typeTest(func(v Value) bool { return v == boolean(true) })
	case "filter":
		return typeTest(func(v Value) bool { t, ok := v.(text); return ok && filterNamed(t.s) != nil })
	case "test":
		return typeTest(func(v Value) bool { t, ok := v.(text); return ok && testNamed(t.s) != nil })
	case "float":
		return typeTest(func(v Value) bool { _, ok := v.(float); return ok })
	case "integer":
		return typeTest(func(v Value) bool {
			switch v.(type) {
			case integer, bigint:
				return true
			}
			return false
		})
	case "number":
		return typeTest(isNumber)
	case "iterable":
		return typeTest(func(v Value) bool {
			switch v.(type) {
			case text, *List, *Map, undefined, *loopVar:
				return true
			}
			return false
		})
	case "lower", "upper":
		return func(r *run, line int, v Value, a args) bool { return classify("is"+name, r.str(v, line).s) }
	case "mapping":
		return typeTest(func(v Value) bool { _, ok := v.(*Map); return ok })
	case "none":
		return typeTest(func(v Value) bool { _, ok := v.(none); return ok })
	case "sameas":
		return func(r *run, line int, v Value, a args) bool {
			o := a.bind(r, line, name, "other")[0]
			if o == nil {
				r.fail(line, "TypeError: sameas needs an argument")
			}
			switch v.(type) {
			case *List, *Map, *namespace, *function, *macro, *loopVar:
				return v == o
			}
			return v.pyType() == o.pyType() && r.equal(v, o, line)
		}
	case "sequence":
		return typeTest(func(v Value) bool {
			switch v := v.(type) {
			case text, *Map, undefined:
				return true
			case *List:
				return v.form <= formRange
			}
			return false
		})
	case "string":
		return typeTest(func(v Value) bool { _, ok := v.(text); return ok })
	case "startingwith", "endingwith":
		// Not Jinja2's, but met in templates written for other engines.
		return func(r *run, line int, v Value, a args) bool {
			s, p := r.str(v, line).s, r.strArg(a.bind(r, line, name, "s")[0], "", name, line).s
			if name == "startingwith" {
				return strings.HasPrefix(s, p)
			}
			return strings.HasSuffix(s, p)
		}
	}
	return nil
}

func comparison(op string) testFunc {
	return func(r *run, line int, v Value, a args) bool {
		o := a.bind(r, line, "test "+op, "other")[0]
		if o == nil {
			r.fail(line, "TypeError: test %s needs an argument", op)
		}
		return r.compare(op, v, o, line)
	}
}

func typeTest(f func(Value) bool) testFunc {
	return func(r *run, line int, v Value, a args) bool {
		a.bind(r, line, "test")
		return f(v)
	}
}
