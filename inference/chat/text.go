package chat

import (
	"slices"
	"strings"
)

// span is a half-open range of byte offsets.
type span struct{ from, to int }

// text is a string that remembers which of its bytes came from outside the
// template. taint lists those bytes: ascending, disjoint, never touching.
// Operations keep it exact where bytes are copied (slicing, joining, replacing)
// and mark the whole result where bytes are made anew, so a byte may count as
// outside although the template wrote it, never the reverse.
type text struct {
	s     string
	taint []span
}

// lit is text that the template wrote.
func lit(s string) text { return text{s: s} }

// outside is text that came from a message, a tool or a model.
func outside(s string) text {
	if s == "" {
		return text{}
	}
	return text{s, []span{{0, len(s)}}}
}

// derived is s, computed from the given texts: outside if any of them is.
func derived(s string, from ...text) text {
	for _, f := range from {
		if len(f.taint) > 0 {
			return outside(s)
		}
	}
	return lit(s)
}

// slice returns the bytes [from, to).
func (t text) slice(from, to int) text {
	out := text{s: t.s[from:to]}
	if len(t.taint) == 0 || from == to {
		return out
	}
	// The common case of one span over the whole needs no search.
	if len(t.taint) == 1 && t.taint[0] == (span{0, len(t.s)}) {
		out.taint = []span{{0, to - from}}
		return out
	}
	i, _ := slices.BinarySearchFunc(t.taint, from, func(s span, at int) int {
		if s.to <= at {
			return -1
		}
		return 1
	})
	for ; i < len(t.taint) && t.taint[i].from < to; i++ {
		s := t.taint[i]
		out.taint = append(out.taint, span{max(s.from, from) - from, min(s.to, to) - from})
	}
	return out
}

func (t text) from(i int) text { return t.slice(i, len(t.s)) }

// remade is s, made from t. Where both are plain ASCII of one length, each byte
// stands for the one at its offset; otherwise the provenance of the whole counts.
func (t text) remade(s string) text {
	if len(s) == len(t.s) && isASCII(t.s) && isASCII(s) {
		return text{s, t.taint}
	}
	return derived(s, t)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// textBuilder joins texts. Every byte is charged to the run, so that a template
// cannot make more text than its limits allow.
type textBuilder struct {
	run   *run
	sb    strings.Builder
	taint []span
}

func (b *textBuilder) mark(from, to int) {
	if n := len(b.taint); n > 0 && b.taint[n-1].to == from {
		b.taint[n-1].to = to
		return
	}
	b.taint = append(b.taint, span{from, to})
}

func (b *textBuilder) add(t text) {
	b.run.charge(len(t.s))
	at := b.sb.Len()
	b.sb.WriteString(t.s)
	for _, s := range t.taint {
		b.mark(at+s.from, at+s.to)
	}
}

func (b *textBuilder) lit(s string) {
	b.run.charge(len(s))
	b.sb.WriteString(s)
}

func (b *textBuilder) text() text { return text{b.sb.String(), b.taint} }

// concat joins two texts.
func (r *run) concat(a, c text) text {
	if a.s == "" {
		return c
	}
	if c.s == "" {
		return a
	}
	b := textBuilder{run: r}
	b.add(a)
	b.add(c)
	return b.text()
}

// repeat is n copies of t.
func (r *run) repeat(t text, n int) text {
	if n <= 0 || t.s == "" {
		return text{}
	}
	r.chargeTimes(len(t.s), n)
	if len(t.taint) == 0 {
		return lit(strings.Repeat(t.s, n))
	}
	return outside(strings.Repeat(t.s, n))
}

// splitText cuts t at every sep (not empty), at most n cuts where n >= 0.
func (r *run) splitText(t text, sep string, n int) []Value {
	r.scan(len(t.s))
	var out []Value
	at := 0
	for n != 0 {
		i := strings.Index(t.s[at:], sep)
		if i < 0 {
			break
		}
		out = append(out, t.slice(at, at+i))
		r.charge(cellBytes)
		at += i + len(sep)
		n--
	}
	return append(out, t.from(at))
}

// replaceText replaces old (may be empty, as in Python) by to, at most n times where n >= 0.
func (r *run) replaceText(t, old, to text, n int) text {
	r.scan(len(t.s))
	b := textBuilder{run: r}
	at := 0
	if old.s == "" {
		for i, c := range t.s + "\x00" {
			if n == 0 {
				break
			}
			_ = c
			r.scan(64) // each piece is a step
			b.add(t.slice(at, i))
			b.add(to)
			at = i
			n--
		}
		b.add(t.from(at))
		return b.text()
	}
	for n != 0 {
		i := strings.Index(t.s[at:], old.s)
		if i < 0 {
			break
		}
		r.scan(64)
		b.add(t.slice(at, at+i))
		b.add(to)
		at += i + len(old.s)
		n--
	}
	if at == 0 {
		return t
	}
	b.add(t.from(at))
	return b.text()
}

// trimText strips characters for which in holds, from the left and the right as asked.
func trimText(t text, left, right bool, in func(rune) bool) text {
	s := t.s
	from, to := 0, len(s)
	if left {
		from = len(s) - len(strings.TrimLeftFunc(s, in))
	}
	if right {
		to = max(from, len(strings.TrimRightFunc(s, in)))
	}
	return t.slice(from, to)
}
