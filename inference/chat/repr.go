package chat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str is Python's str(v): what a template prints.
func (r *run) str(v Value, line int) text {
	switch v := v.(type) {
	case text:
		return v
	case undefined:
		return text{}
	case integer:
		return lit(strconv.FormatInt(int64(v), 10))
	}
	b := textBuilder{run: r}
	r.writeRepr(&b, v, line)
	return b.text()
}

// repr is Python's repr(v).
func (r *run) repr(v Value, line int) text {
	b := textBuilder{run: r}
	r.writeRepr(&b, v, line)
	return b.text()
}

func (r *run) writeRepr(b *textBuilder, v Value, line int) {
	r.enter(line)
	defer r.leave()
	switch v := v.(type) {
	case none:
		b.lit("None")
	case undefined:
		b.lit("Undefined")
	case boolean:
		if v {
			b.lit("True")
		} else {
			b.lit("False")
		}
	case integer:
		b.lit(strconv.FormatInt(int64(v), 10))
	case bigint:
		b.lit(v.String())
	case float:
		b.lit(floatRepr(float64(v)))
	case text:
		b.add(derived(strRepr(v.s), v))
	case *List:
		r.writeListRepr(b, v, line)
	case *Map:
		b.lit("{")
		for i, k := range v.keys {
			if i > 0 {
				b.lit(", ")
			}
			r.writeRepr(b, k, line)
			b.lit(": ")
			r.writeRepr(b, v.vals[i], line)
		}
		b.lit("}")
	case *namespace:
		b.lit("<Namespace ")
		r.writeRepr(b, v.vars, line)
		b.lit(">")
	case *function:
		b.lit("<function " + v.name + ">")
	case *macro:
		b.lit("<Macro " + strRepr(v.node.name) + ">")
	case *loopVar:
		b.lit(fmt.Sprintf("<LoopContext %d/%d>", v.at+1, len(v.items)))
	default:
		panic(fmt.Sprintf("BUG: repr of %T", v))
	}
}

func (r *run) writeListRepr(b *textBuilder, l *List, line int) {
	open, end := "[", "]"
	switch l.form {
	case formTuple:
		open, end = "(", ")"
		if len(l.items) == 1 {
			end = ",)"
		}
	case formKeys, formValues, formItems:
		open, end = l.pyType()+"([", "])"
	case formRange:
		b.lit(rangeRepr(l))
		return
	}
	b.lit(open)
	for i, it := range l.items {
		if i > 0 {
			b.lit(", ")
		}
		r.writeRepr(b, it, line)
	}
	b.lit(end)
}

func rangeRepr(l *List) string {
	var start, stop, step integer = 0, 0, 1
	if n := len(l.items); n > 0 {
		start = l.items[0].(integer)
		if n > 1 {
			step = l.items[1].(integer) - start
		}
		stop = l.items[n-1].(integer) + step
	}
	if step == 1 {
		return fmt.Sprintf("range(%d, %d)", start, stop)
	}
	return fmt.Sprintf("range(%d, %d, %d)", start, stop, step)
}

// strRepr quotes a string as Python does: single quotes unless only double ones
// save escaping.
func strRepr(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteByte(q)
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == rune(q) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case c < 0x80 && (c < 0x20 || c == 0x7f):
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x80 || unicode.IsPrint(c):
			b.WriteString(s[i : i+n])
		case c <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
		i += n
	}
	b.WriteByte(q)
	return b.String()
}

// floatRepr is the shortest text that reads back as f, in Python's layout: an
// exponent below 1e-4 and from 1e16 on, otherwise always a point.
func floatRepr(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
