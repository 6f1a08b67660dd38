package chat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filterFunc is a filter: v | name(a).
type filterFunc func(r *run, line int, v Value, a args) Value

// filterNamed is the filter of that name, nil where there is none.
func filterNamed(name string) filterFunc {
	switch name {
	case "abs":
		return func(r *run, line int, v Value, a args) Value {
			if f, ok := v.(float); ok {
				return float(math.Abs(float64(f)))
			}
			b, ok := bigOf(v)
			if !ok {
				r.fail(line, "TypeError: bad operand type for abs(): '%s'", v.pyType())
			}
			return normInt(new(big.Int).Abs(b))
		}
	case "attr":
		return func(r *run, line int, v Value, a args) Value {
			n := r.strArg(a.bind(r, line, name, "name")[0], "", name, line).s
			if m := r.member(v, n); m != nil && !strings.HasPrefix(n, "__") {
				return m
			}
			return undefined{objectName(v) + " has no attribute '" + n + "'"}
		}
	case "batch":
		return filterBatch
	case "capitalize", "lower", "title", "upper":
		return func(r *run, line int, v Value, a args) Value {
			a.bind(r, line, name)
			s := r.str(v, line)
			r.charge(len(s.s))
			if name == "title" {
				return s.remade(filterTitle(s.s))
			}
			return s.remade(changeCase(name, s.s))
		}
	case "center":
		return func(r *run, line int, v Value, a args) Value {
			return r.pad(r.str(v, line), r.intArg(a.bind(r, line, name, "width")[0], 80, name, line), lit(" "), "center")
		}
	case "count", "length":
		return func(r *run, line int, v Value, a args) Value {
			return integer(r.length(v, line))
		}
	case "d", "default":
		return func(r *run, line int, v Value, a args) Value {
			b := a.bind(r, line, name, "default_value", "boolean")
			_, undef := v.(undefined)
			if undef || b[1] != nil && truth(b[1]) && !truth(v) {
				if b[0] == nil {
					return text{}
				}
				return b[0]
			}
			return v
		}
	case "dictsort":
		return filterDictsort
	case "e", "escape", "forceescape":
		return func(r *run, line int, v Value, a args) Value {
			s := r.str(v, line)
			for _, p := range [][2]string{{"&", "&amp;"}, {">", "&gt;"}, {"<", "&lt;"}, {"'", "&#39;"}, {`"`, "&#34;"}} {
				s = r.replaceText(s, lit(p[0]), lit(p[1]), -1)
			}
			return s
		}
	case "first", "last":
		return func(r *run, line int, v Value, a args) Value {
			items := r.iterate(v, line)
			if len(items) == 0 {
				return undefined{"No " + name + " item, sequence was empty."}
			}
			if name == "first" {
				return items[0]
			}
			return items[len(items)-1]
		}
	case "float":
		return func(r *run, line int, v Value, a args) Value {
			if f, ok := floatOf(v); ok {
				return float(f)
			}
			if s, ok := v.(text); ok {
				if f, ok := parseFloat(s.s); ok {
					return float(f)
				}
			}
			if d := a.bind(r, line, name, "default")[0]; d != nil {
				return d
			}
			return float(0)
		}
	case "format":
		return func(r *run, line int, v Value, a args) Value {
			s := r.str(v, line)
			if len(a.kw) > 0 {
				m := NewMap()
				r.update(m, args{kw: a.kw}, line)
				return r.percent(s, m, line)
			}
			return r.percent(s, tuple(a.pos...), line)
		}
	case "from_json", "fromjson":
		return func(r *run, line int, v Value, a args) Value {
			s := r.strArg(v, "", name, line)
			r.charge(8 * len(s.s))
			out, err := FromJSON([]byte(s.s))
			if err != nil {
				r.fail(line, "%s: %v", name, err)
			}
			return out
		}
	case "groupby":
		return filterGroupby
	case "indent":
		return filterIndent
	case "int":
		return func(r *run, line int, v Value, a args) Value {
			b := a.bind(r, line, name, "default", "base")
			if out := r.toInt(v, r.intArg(b[1], 10, name, line)); out != nil {
				return out
			}
			if b[0] != nil {
				return b[0]
			}
			return integer(0)
		}
	case "items":
		return func(r *run, line int, v Value, a args) Value {
			switch v := v.(type) {
			case undefined:
				return NewList()
			case *Map:
				return r.items(v)
			}
			r.fail(line, "TypeError: Can only get item pairs from a mapping.")
			return nil
		}
	case "join":
		return func(r *run, line int, v Value, a args) Value {
			b := a.bind(r, line, name, "d", "attribute")
			sep := lit("")
			if b[0] != nil {
				sep = r.str(b[0], line)
			}
			out := textBuilder{run: r}
			for i, it := range r.iterate(v, line) {
				if i > 0 {
					out.add(sep)
				}
				if b[1] != nil {
					it = r.path(it, b[1], line)
				}
				out.add(r.str(it, line))
			}
			return out.text()
		}
	case "list":
		return func(r *run, line int, v Value, a args) Value {
			items := r.iterate(v, line)
			r.charge(cellBytes * len(items))
			return NewList(append([]Value(nil), items...)...)
		}
	case "map":
		return filterMap
	case "max", "min":
		return func(r *run, line int, v Value, a args) Value {
			b := a.bind(r, line, name, "case_sensitive", "attribute")
			items := r.iterate(v, line)
			if len(items) == 0 {
				return undefined{"No aggregated item, sequence was empty."}
			}
			best, bestKey := Value(nil), Value(nil)
			for _, it := range items {
				k := r.sortKey(it, b[1], b[0], line)
				if best == nil || name == "max" && r.compare(">", k, bestKey, line) || name == "min" && r.compare("<", k, bestKey, line) {
					best, bestKey = it, k
				}
			}
			return best
		}
	case "pprint":
		return func(r *run, line int, v Value, a args) Value { return r.repr(v, line) }
	case "reject", "select", "rejectattr", "selectattr":
		return func(r *run, line int, v Value, a args) Value { return r.selectItems(name, v, a, line) }
	case "replace":
		return func(r *run, line int, v Value, a args) Value {
			b := a.bind(r, line, name, "old", "new", "count")
			if b[0] == nil || b[1] == nil {
				r.fail(line, "TypeError: replace needs two arguments")
			}
			n := -1
			if _, isNone := b[2].(none); !isNone {
				n = r.intArg(b[2], -1, name, line)
			}
			return r.replaceText(r.str(v, line), r.str(b[0], line), r.str(b[1], line), n)
		}
	case "reverse":
		return func(r *run, line int, v Value, a args) Value {
			if s, ok := v.(text); ok {
				return r.slice(s, none{}, none{}, integer(-1), line)
			}
			return NewList(r.reversed(r.iterate(v, line))...)
		}
	case "round":
		return filterRound
	case "safe", "string":
		return func(r *run, line int, v Value, a args) Value { return r.str(v, line) }
	case "slice":
		return filterSlice
	case "sort":
		return func(r *run, line int, v Value, a args) Value {
			b := a.bind(r, line, name, "reverse", "case_sensitive", "attribute")
			items := r.iterate(v, line)
			keys := make([]Value, len(items))
			order := make([]int, len(items))
			r.charge(2 * cellBytes * len(items))
			for i, it := range items {
				order[i] = i
				keys[i] = r.sortKey(it, b[2], b[1], line)
			}
			r.sortBy(order, line, func(i int) Value { return keys[i] }, b[0] != nil && truth(b[0]))
			out := NewList()
			for _, i := range order {
				out.Append(items[i])
			}
			return out
		}
	case "striptags":
		return func(r *run, line int, v Value, a args) Value {
			s := r.str(v, line)
			r.charge(len(s.s))
			return derived(stripTags(s.s), s)
		}
	case "sum":
		return func(r *run, line int, v Value, a args) Value {
			b := a.bind(r, line, name, "attribute", "start")
			total := b[1]
			if total == nil {
				total = integer(0)
			}
			for _, it := range r.iterate(v, line) {
				if _, isNone := b[0].(none); b[0] != nil && !isNone {
					it = r.path(it, b[0], line)
				}
				total = r.arith("+", total, it, line)
			}
			return total
		}
	case "tojson":
		return filterTojson
	case "trim":
		return func(r *run, line int, v Value, a args) Value {
			return r.strip(r.str(v, line), a.bind(r, line, name, "chars")[0], true, true, line)
		}
	case "truncate":
		return filterTruncate
	case "unique":
		return func(r *run, line int, v Value, a args) Value {
			b := a.bind(r, line, name, "case_sensitive", "attribute")
			seen := map[hashKey]bool{}
			out := NewList()
			for _, it := range r.iterate(v, line) {
				k := r.sortKey(it, b[1], b[0], line)
				h, ok := r.hash(k)
				if !ok {
					r.fail(line, "TypeError: unhashable type: '%s'", k.pyType())
				}
				r.charge(2 * cellBytes)
				if !seen[h] {
					seen[h] = true
					out.Append(it)
				}
			}
			return out
		}
	case "urlencode":
		return filterURLEncode
	case "wordcount":
		return func(r *run, line int, v Value, a args) Value {
			s := r.str(v, line)
			r.scan(len(s.s))
			return integer(len(strings.FieldsFunc(s.s, func(c rune) bool { return !isNameRune(c) })))
		}
	case "wordwrap":
		return filterWordwrap
	case "xmlattr":
		return filterXMLAttr
	case "filesizeformat":
		return filterFileSize
	}
	return nil
}

func (r *run) length(v Value, line int) int {
	switch v := v.(type) {
	case undefined:
		return 0
	case text:
		r.scan(len(v.s))
		return utf8.RuneCountInString(v.s)
	case *List:
		return len(v.items)
	case *Map:
		return len(v.keys)
	case *loopVar:
		return len(v.items)
	}
	r.fail(line, "TypeError: object of type '%s' has no len()", v.pyType())
	return 0
}

// filterTitle starts a word behind blanks and brackets only, unlike str.title.
func filterTitle(s string) string {
	var b strings.Builder
	start := true
	for _, c := range s {
		if strings.ContainsRune("-({[<", c) || unicode.IsSpace(c) {
			start = true
			b.WriteRune(c)
			continue
		}
		if start {
			b.WriteRune(unicode.ToUpper(c))
		} else {
			b.WriteRune(unicode.ToLower(c))
		}
		start = false
	}
	return b.String()
}

// path is the attribute argument of map, sort, sum and the like: a name, an
// index, or several with points between them.
func (r *run) path(v, attr Value, line int) Value {
	t, ok := attr.(text)
	if !ok {
		return r.index(v, attr, line)
	}
	for _, p := range strings.Split(t.s, ".") {
		var k Value = lit(p)
		if n, err := strconv.Atoi(p); err == nil {
			k = integer(n)
		}
		v = r.index(v, k, line)
	}
	return v
}

func (r *run) sortKey(v, attr, caseSensitive Value, line int) Value {
	if _, isNone := attr.(none); attr != nil && !isNone {
		v = r.path(v, attr, line)
	}
	if caseSensitive != nil && truth(caseSensitive) {
		return v
	}
	if t, ok := v.(text); ok {
		r.scan(len(t.s))
	}
	return foldCase(v)
}
