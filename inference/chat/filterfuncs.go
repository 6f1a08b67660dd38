package chat

import (
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

func filterBatch(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "batch", "linecount", "fill_with")
	n := r.intArg(b[0], 0, "batch", line)
	if n <= 0 {
		r.fail(line, "ValueError: batch needs a positive number")
	}
	out := NewList()
	items := r.iterate(v, line)
	for len(items) > 0 {
		k := min(n, len(items))
		r.charge(cellBytes * (k + 1))
		part := NewList(append([]Value(nil), items[:k]...)...)
		if _, isNone := b[1].(none); b[1] != nil && !isNone && k < n {
			r.chargeTimes(cellBytes, n-k)
			for len(part.items) < n {
				part.Append(b[1])
			}
		}
		out.Append(part)
		items = items[k:]
	}
	return out
}

func filterSlice(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "slice", "slices", "fill_with")
	n := r.intArg(b[0], 0, "slice", line)
	if n <= 0 {
		r.fail(line, "ValueError: slice needs a positive number")
	}
	r.chargeTimes(2*cellBytes, n)
	items := r.iterate(v, line)
	per, extra := len(items)/n, len(items)%n
	out := NewList()
	at := 0
	for i := range n {
		k := per
		if i < extra {
			k++
		}
		r.charge(cellBytes * k)
		part := NewList(append([]Value(nil), items[at:at+k]...)...)
		at += k
		if _, isNone := b[1].(none); b[1] != nil && !isNone && i >= extra && extra > 0 {
			part.Append(b[1])
		}
		out.Append(part)
	}
	return out
}

func filterDictsort(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "dictsort", "case_sensitive", "by", "reverse")
	m, ok := v.(*Map)
	if !ok {
		r.fail(line, "TypeError: dictsort needs a mapping, not '%s'", v.pyType())
	}
	by := r.strArg(b[1], "key", "dictsort", line).s
	if by != "key" && by != "value" {
		r.fail(line, "dictsort: by is 'key' or 'value'")
	}
	items := r.items(m)
	order := make([]int, len(items.items))
	for i := range order {
		order[i] = i
	}
	key := func(i int) Value {
		if by == "key" {
			return r.sortKey(m.keys[i], nil, b[0], line)
		}
		return r.sortKey(m.vals[i], nil, b[0], line)
	}
	r.sortBy(order, line, key, b[2] != nil && truth(b[2]))
	out := NewList()
	for _, i := range order {
		out.Append(items.items[i])
	}
	return out
}

func filterGroupby(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "groupby", "attribute", "default", "case_sensitive")
	if b[0] == nil {
		r.fail(line, "TypeError: groupby needs an attribute")
	}
	items := r.iterate(v, line)
	keys, raw := make([]Value, len(items)), make([]Value, len(items))
	order := make([]int, len(items))
	r.charge(4 * cellBytes * len(items))
	for i, it := range items {
		order[i] = i
		k := r.path(it, b[0], line)
		if _, ok := k.(undefined); ok && b[1] != nil {
			k = b[1]
		}
		raw[i] = k
		keys[i] = r.sortKey(k, nil, b[2], line)
	}
	r.sortBy(order, line, func(i int) Value { return keys[i] }, false)
	out := NewList()
	var cur *List
	for n, i := range order {
		if n == 0 || !r.equal(keys[i], keys[order[n-1]], line) {
			cur = NewList()
			g := tuple(raw[i], cur)
			g.group = true
			out.Append(g)
		}
		cur.Append(items[i])
	}
	return out
}

func filterIndent(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "indent", "width", "first", "blank")
	by, isText := b[0].(text)
	if !isText {
		by = r.repeat(lit(" "), r.intArg(b[0], 4, "indent", line))
	}
	first := b[1] != nil && truth(b[1])
	blank := b[2] != nil && truth(b[2])
	s := r.str(v, line)
	out := textBuilder{run: r}
	lines := r.lines(r.concat(s, lit("\n")), false)
	for i, l := range lines {
		l := l.(text)
		if i > 0 {
			out.lit("\n")
		}
		if i == 0 && first || i > 0 && (blank || l.s != "") {
			out.add(by)
		}
		out.add(l)
	}
	return out.text()
}

func (r *run) toInt(v Value, base int) Value {
	switch v := v.(type) {
	case integer, bigint:
		return v
	case boolean:
		n, _ := intOf(v)
		return integer(n)
	case float:
		if n, ok := intOfFloat(float64(v)); ok {
			return n
		}
	case text:
		if base < 2 || base > 36 {
			return nil
		}
		if n, ok := parseInt(v.s, base); ok {
			return n
		}
		if f, ok := parseFloat(v.s); ok {
			if n, ok := intOfFloat(f); ok {
				return n
			}
		}
	}
	return nil
}

func filterMap(r *run, line int, v Value, a args) Value {
	out := NewList()
	if len(a.pos) == 0 {
		b := a.bind(r, line, "map", "attribute", "default")
		if b[0] == nil {
			r.fail(line, "map needs a filter or an attribute")
		}
		for _, it := range r.iterate(v, line) {
			r.charge(cellBytes)
			x := r.path(it, b[0], line)
			if _, ok := x.(undefined); ok && b[1] != nil {
				x = b[1]
			}
			out.Append(x)
		}
		return out
	}
	name := r.strArg(a.pos[0], "", "map", line).s
	f := filterNamed(name)
	if f == nil {
		r.fail(line, "no filter named '%s'", name)
	}
	rest := args{pos: a.pos[1:], kw: a.kw}
	for _, it := range r.iterate(v, line) {
		r.enter(line)
		r.charge(cellBytes)
		out.Append(f(r, line, it, rest))
		r.leave()
	}
	return out
}

// selectItems is select, reject, selectattr and rejectattr.
func (r *run) selectItems(name string, v Value, a args, line int) Value {
	rest := a.pos
	var attr Value
	if strings.HasSuffix(name, "attr") {
		if len(rest) == 0 {
			r.fail(line, "TypeError: %s needs an attribute", name)
		}
		attr, rest = rest[0], rest[1:]
	}
	check := func(_ *run, _ int, v Value, _ args) bool { return truth(v) }
	if len(rest) > 0 {
		n := r.strArg(rest[0], "", name, line).s
		if check = testNamed(n); check == nil {
			r.fail(line, "no test named '%s'", n)
		}
		rest = rest[1:]
	}
	want := strings.HasPrefix(name, "select")
	out := NewList()
	for _, it := range r.iterate(v, line) {
		r.enter(line)
		x := it
		if attr != nil {
			x = r.path(it, attr, line)
		}
		if check(r, line, x, args{pos: rest, kw: a.kw}) == want {
			r.charge(cellBytes)
			out.Append(it)
		}
		r.leave()
	}
	return out
}

func filterRound(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "round", "precision", "method")
	p := r.intArg(b[0], 0, "round", line)
	method := r.strArg(b[1], "common", "round", line).s
	if p < -308 || p > 308 {
		r.fail(line, "round: precision %d is out of range", p)
	}
	_, isFloat := v.(float)
	f, ok := floatOf(v)
	if !ok {
		r.fail(line, "TypeError: type %s doesn't define __round__ method", v.pyType())
	}
	scale := math.Pow(10, float64(p))
	switch method {
	case "common":
		if !isFloat && p >= 0 {
			n, _ := bigOf(v)
			return normInt(new(big.Int).Set(n))
		}
		if p < 0 {
			f = math.RoundToEven(f/math.Pow(10, float64(-p))) * math.Pow(10, float64(-p))
		} else if out, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', p, 64), 64); err == nil {
			f = out
		}
		if !isFloat {
			if n, ok := intOfFloat(f); ok {
				return n
			}
		}
		return float(f)
	case "ceil":
		return float(math.Ceil(f*scale) / scale)
	case "floor":
		return float(math.Floor(f*scale) / scale)
	}
	r.fail(line, "method must be common, ceil or floor")
	return nil
}

func filterTojson(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "tojson", "ensure_ascii", "indent", "separators", "sort_keys")
	st := jsonPython
	st.ascii = b[0] != nil && truth(b[0])
	st.sortKeys = b[3] != nil && truth(b[3])
	switch in := b[1].(type) {
	case nil, none:
	case text:
		st.indent = &in.s
	default:
		n := r.intArg(in, 0, "tojson", line)
		s := r.repeat(lit(" "), n).s
		st.indent = &s
	}
	if st.indent != nil {
		st.item = ","
	}
	if l, ok := b[2].(*List); ok {
		if len(l.items) != 2 {
			r.fail(line, "tojson: separators must be two strings")
		}
		st.item = r.strArg(l.items[0], "", "separators", line).s
		st.key = r.strArg(l.items[1], "", "separators", line).s
	}
	out := textBuilder{run: r}
	r.writeJSON(&out, v, &st, 0, line)
	return out.text()
}

func filterTruncate(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "truncate", "length", "killwords", "end", "leeway")
	n := r.intArg(b[0], 255, "truncate", line)
	end := r.strArg(b[2], "...", "truncate", line)
	leeway := 5
	if _, isNone := b[3].(none); !isNone {
		leeway = r.intArg(b[3], 5, "truncate", line)
	}
	s := r.str(v, line)
	r.charge(8 * len(s.s))
	at := runeOffsets(s.s)
	if len(at)-1 <= n+leeway {
		return s
	}
	keep := n - utf8.RuneCountInString(end.s)
	if keep < 0 {
		r.fail(line, "truncate: the length is below that of the end")
	}
	cut := s.slice(0, at[keep])
	if b[1] == nil || !truth(b[1]) {
		if i := strings.LastIndexByte(cut.s, ' '); i >= 0 {
			cut = cut.slice(0, i)
		}
	}
	return r.concat(cut, end)
}

func stripTags(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		end := ">"
		if strings.HasPrefix(s[i:], "<!--") {
			end = "-->"
		}
		j := strings.Index(s[i:], end)
		if j < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i+j+len(end):]
	}
	b.WriteString(s)
	return strings.Join(strings.Fields(b.String()), " ")
}

func filterURLEncode(r *run, line int, v Value, a args) Value {
	quote := func(t text, safe string, plus bool) text {
		r.charge(3 * len(t.s))
		var b strings.Builder
		for i := 0; i < len(t.s); i++ {
			c := t.s[i]
			switch {
			case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~"+safe, c) >= 0:
				b.WriteByte(c)
			case plus && c == ' ':
				b.WriteByte('+')
			default:
				b.WriteString("%" + strings.ToUpper(strconv.FormatInt(int64(c)|0x100, 16)[1:]))
			}
		}
		return derived(b.String(), t)
	}
	var pairs []Value
	switch v := v.(type) {
	case *Map:
		pairs = r.items(v).items
	case *List:
		pairs = v.items
	default:
		return quote(r.str(v, line), "/", false)
	}
	out := textBuilder{run: r}
	for i, p := range pairs {
		kv := r.iterate(p, line)
		if len(kv) != 2 {
			r.fail(line, "urlencode needs pairs")
		}
		if i > 0 {
			out.lit("&")
		}
		out.add(quote(r.str(kv[0], line), "", true))
		out.lit("=")
		out.add(quote(r.str(kv[1], line), "", true))
	}
	return out.text()
}

// filterWordwrap breaks lines at blanks so that none is longer than width; longer
// words are cut.
func filterWordwrap(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "wordwrap", "width", "break_long_words", "wrapstring", "break_on_hyphens")
	width := r.intArg(b[0], 79, "wordwrap", line)
	if width <= 0 {
		r.fail(line, "ValueError: invalid width %d (must be > 0)", width)
	}
	long := b[1] == nil || truth(b[1])
	nl := r.strArg(b[2], "\n", "wordwrap", line)
	s := r.str(v, line)
	var out []string
	for _, l := range r.lines(s, false) {
		cur, n := "", 0
		for _, w := range strings.Fields(l.(text).s) {
			for {
				k := utf8.RuneCountInString(w)
				r.charge(k + 1)
				switch {
				case n > 0 && n+1+k <= width:
					cur, n = cur+" "+w, n+1+k
				case n > 0:
					out = append(out, cur)
					cur, n = "", 0
					continue
				case k > width && long:
					at := runeOffsets(w)
					r.charge(8 * len(w))
					out = append(out, w[:at[width]])
					w = w[at[width]:]
					continue
				default:
					cur, n = w, k
				}
				break
			}
		}
		out = append(out, cur)
	}
	return derived(strings.Join(out, nl.s), s, nl)
}

func filterXMLAttr(r *run, line int, v Value, a args) Value {
	b := a.bind(r, line, "xmlattr", "autospace")
	m, ok := v.(*Map)
	if !ok {
		r.fail(line, "TypeError: xmlattr needs a mapping, not '%s'", v.pyType())
	}
	esc := filterNamed("escape")
	out := textBuilder{run: r}
	for i, k := range m.keys {
		switch m.vals[i].(type) {
		case none, undefined:
			continue
		}
		if out.sb.Len() > 0 || b[0] == nil || truth(b[0]) {
			out.lit(" ")
		}
		out.add(esc(r, line, k, args{}).(text))
		out.lit(`="`)
		out.add(esc(r, line, m.vals[i], args{}).(text))
		out.lit(`"`)
	}
	return out.text()
}

func filterFileSize(r *run, line int, v Value, a args) Value {
	bin := a.bind(r, line, "filesizeformat", "binary")[0]
	f, ok := floatOf(v)
	if s, isText := v.(text); isText {
		f, ok = parseFloat(s.s)
	}
	if !ok {
		r.fail(line, "filesizeformat needs a number")
	}
	base, units := 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if bin != nil && truth(bin) {
		base, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	if f == 1 {
		return lit("1 Byte")
	}
	if f < base {
		return lit(strconv.FormatFloat(math.Trunc(f), 'f', 0, 64) + " Bytes")
	}
	i := sort.Search(len(units)-1, func(i int) bool { return f < math.Pow(base, float64(i+2)) })
	return lit(strconv.FormatFloat(f/math.Pow(base, float64(i+1)), 'f', 1, 64) + " " + units[i])
}
