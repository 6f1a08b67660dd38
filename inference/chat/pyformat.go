package chat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is one conversion of a format: flags, width, precision and verb.
type spec struct {
	fill      text
	align     byte // '<' '>' '^' '=', 0: by type
	sign      byte
	alt, zero bool
	comma     bool
	width     int
	prec      int // -1: none
	verb      byte
}

// maxWidth bounds width and precision of a conversion.
const maxWidth = 10_000

// percent is the % operator of strings.
func (r *run) percent(f text, v Value, line int) Value {
	values := []Value{v}
	if l, ok := v.(*List); ok && l.form == formTuple {
		values = l.items
	}
	m, _ := v.(*Map)
	used := 0
	take := func() Value {
		if used == len(values) {
			r.fail(line, "TypeError: not enough arguments for format string")
		}
		used++
		return values[used-1]
	}
	out := textBuilder{run: r}
	s := f.s
	at := 0
	for {
		i := strings.IndexByte(s[at:], '%')
		if i < 0 {
			break
		}
		out.add(f.slice(at, at+i))
		at += i + 1
		sp := spec{prec: -1, fill: lit(" ")}
		var val Value
		if at < len(s) && s[at] == '(' {
			j := strings.IndexByte(s[at:], ')')
			if j < 0 || m == nil {
				r.fail(line, "TypeError: format requires a mapping")
			}
			key := s[at+1 : at+j]
			x, ok := m.Get(key)
			if !ok {
				r.fail(line, "KeyError: %s", strRepr(key))
			}
			val = x
			used = len(values)
			at += j + 1
		}
	flags:
		for ; at < len(s); at++ {
			switch s[at] {
			case '-':
				sp.align = '<'
			case '+', ' ':
				if sp.sign != '+' {
					sp.sign = s[at]
				}
			case '0':
				sp.zero = true
			case '#':
				sp.alt = true
			default:
				break flags
			}
		}
		number := func() int {
			if at < len(s) && s[at] == '*' {
				at++
				return r.intArg(take(), 0, "format", line)
			}
			n := 0
			for at < len(s) && s[at] >= '0' && s[at] <= '9' && n <= maxWidth {
				n = n*10 + int(s[at]-'0')
				at++
			}
			return n
		}
		if sp.width = number(); sp.width < 0 {
			sp.align, sp.width = '<', -sp.width
		}
		if at < len(s) && s[at] == '.' {
			at++
			sp.prec = max(0, number())
		}
		for at < len(s) && strings.IndexByte("hlL", s[at]) >= 0 {
			at++
		}
		if at == len(s) {
			r.fail(line, "ValueError: incomplete format")
		}
		sp.verb = s[at]
		at++
		if sp.verb == '%' {
			out.lit("%")
			continue
		}
		if val == nil {
			val = take()
		}
		out.add(r.convert(val, sp, line))
	}
	out.add(f.from(at))
	if used < len(values) && m == nil {
		r.fail(line, "TypeError: not all arguments converted during string formatting")
	}
	return out.text()
}

// convert formats one value of the % operator.
func (r *run) convert(v Value, sp spec, line int) text {
	switch sp.verb {
	case 's', 'r', 'a':
		t := r.str(v, line)
		if sp.verb != 's' {
			t = r.repr(v, line)
		}
		if sp.prec >= 0 && utf8.RuneCountInString(t.s) > sp.prec {
			t = t.slice(0, runeOffsets(t.s)[sp.prec])
		}
		sp.zero = false
		return r.justify(t, sp, '>', line)
	case 'c':
		if t, ok := v.(text); ok {
			return r.justify(t, sp, '>', line)
		}
		n := r.intArg(v, 0, "%c", line)
		if n < 0 || n > 0x10ffff {
			r.fail(line, "OverflowError: %%c arg not in range(0x110000)")
		}
		return r.justify(lit(string(rune(n))), sp, '>', line)
	case 'd', 'i', 'u':
		sp.verb = 'd'
	case 'x', 'X', 'o', 'e', 'E', 'f', 'F', 'g', 'G':
	default:
		r.fail(line, "ValueError: unsupported format character '%c'", sp.verb)
	}
	return r.number(v, sp, line)
}

// number formats a number as sp says.
func (r *run) number(v Value, sp spec, line int) text {
	if sp.width > maxWidth || sp.prec > maxWidth {
		r.fail(line, "ValueError: width or precision above %d", maxWidth)
	}
	s := ""
	switch sp.verb {
	case 'd', 'x', 'X', 'o', 'b', 'n':
		b, ok := bigOf(v)
		if f, isFloat := v.(float); isFloat && sp.verb == 'd' {
			if n, fits := intOfFloat(float64(f)); fits {
				b, ok = bigOf(n)
			}
		}
		if !ok {
			r.fail(line, "TypeError: %%%c format: a real number is required, not %s", sp.verb, v.pyType())
		}
		base, prefix := 10, ""
		switch sp.verb {
		case 'x', 'X':
			base, prefix = 16, "0x"
		case 'o':
			base, prefix = 8, "0o"
		case 'b':
			base, prefix = 2, "0b"
		}
		s = new(big.Int).Abs(b).Text(base)
		for len(s) < sp.prec {
			s = strings.Repeat("0", sp.prec-len(s)) + s
		}
		if sp.alt {
			s = prefix + s
		}
		if sp.verb == 'X' {
			s = strings.ToUpper(s)
		}
		if b.Sign() < 0 {
			s = "-" + s
		}
	default:
		f, ok := floatOf(v)
		if !ok {
			r.fail(line, "TypeError: must be real number, not %s", v.pyType())
		}
		s = formatFloat(f, sp)
	}
	if sp.comma {
		s = thousands(s)
	}
	if sp.sign != 0 && !strings.HasPrefix(s, "-") && sp.sign != '-' {
		s = string(sp.sign) + s
	}
	t := lit(s)
	if sp.zero && sp.align != '<' {
		return r.zfill(t, sp.width)
	}
	return r.justify(t, sp, '>', line)
}

func formatFloat(f float64, sp spec) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return floatRepr(f)
	}
	p := sp.prec
	if p < 0 {
		p = 6
	}
	verb := sp.verb | 0x20
	if sp.verb == '%' {
		return strconv.FormatFloat(f*100, 'f', p, 64) + "%"
	}
	s := ""
	if verb == 'g' {
		// Like C: p significant digits, trailing zeros dropped, exponent from p on.
		p = max(p, 1)
		s = strconv.FormatFloat(f, 'e', p-1, 64)
		i := strings.IndexByte(s, 'e')
		exp, _ := strconv.Atoi(s[i+1:])
		if exp < -4 || exp >= p {
			mant := s[:i]
			if strings.Contains(mant, ".") {
				mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
			}
			s = mant + s[i:]
		} else {
			s = strconv.FormatFloat(f, 'f', p-1-exp, 64)
			if strings.Contains(s, ".") {
				s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
			}
		}
	} else {
		s = strconv.FormatFloat(f, verb, p, 64)
	}
	if sp.verb < 'a' {
		s = strings.ToUpper(s)
	}
	return s
}

// thousands puts commas between groups of three digits.
func thousands(s string) string {
	start := 0
	if strings.HasPrefix(s, "-") {
		start = 1
	}
	end := start
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	var b strings.Builder
	b.WriteString(s[:start])
	for i := start; i < end; i++ {
		if i > start && (end-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	b.WriteString(s[end:])
	return b.String()
}

func (r *run) justify(t text, sp spec, def byte, line int) text {
	if sp.width > maxWidth {
		r.fail(line, "ValueError: width above %d", maxWidth)
	}
	align := sp.align
	if align == 0 {
		align = def
	}
	how := map[byte]string{'<': "ljust", '>': "rjust", '^': "center", '=': "rjust"}[align]
	if how == "center" {
		n := max(0, sp.width-utf8.RuneCountInString(t.s))
		return r.concat(r.concat(r.repeat(sp.fill, n/2), t), r.repeat(sp.fill, n-n/2))
	}
	return r.pad(t, sp.width, sp.fill, how)
}

// formatBraces is str.format: {} {0} {name} with attributes, items, !r, !s and a
// format specification.
func (r *run) formatBraces(f text, a args, line int) Value {
	out := textBuilder{run: r}
	s := f.s
	at, auto := 0, 0
	for {
		i := strings.IndexAny(s[at:], "{}")
		if i < 0 {
			break
		}
		out.add(f.slice(at, at+i))
		at += i
		if at+1 < len(s) && s[at+1] == s[at] {
			out.add(f.slice(at, at+1))
			at += 2
			continue
		}
		if s[at] == '}' {
			r.fail(line, "ValueError: Single '}' encountered in format string")
		}
		end := strings.IndexByte(s[at:], '}')
		if end < 0 {
			r.fail(line, "ValueError: expected '}' before end of string")
		}
		field := s[at+1 : at+end]
		if strings.IndexByte(field, '{') >= 0 {
			r.fail(line, "a nested field in a format is not supported")
		}
		at += end + 1
		field, specText, _ := strings.Cut(field, ":")
		field, conv, hasConv := strings.Cut(field, "!")
		v := r.field(field, a, &auto, line)
		if hasConv {
			if conv != "r" && conv != "s" {
				r.fail(line, "ValueError: unknown conversion specifier '%s'", conv)
			}
			if conv == "r" {
				v = r.repr(v, line)
			} else {
				v = r.str(v, line)
			}
		}
		out.add(r.formatSpec(v, specText, line))
	}
	out.add(f.from(at))
	return out.text()
}

// field resolves what stands in braces: a number, a name, then .attr and [item].
func (r *run) field(s string, a args, auto *int, line int) Value {
	n := strings.IndexAny(s, ".[")
	if n < 0 {
		n = len(s)
	}
	head, rest := s[:n], s[n:]
	var v Value
	if i, err := strconv.Atoi(head); err == nil || head == "" {
		if head == "" {
			i = *auto
			*auto++
		}
		if i < 0 || i >= len(a.pos) {
			r.fail(line, "IndexError: Replacement index %d out of range for positional args tuple", i)
		}
		v = a.pos[i]
	} else {
		for _, k := range a.kw {
			if k.name == head {
				v = k.v
			}
		}
		if v == nil {
			r.fail(line, "KeyError: %s", strRepr(head))
		}
	}
	for rest != "" {
		if rest[0] == '.' {
			n := strings.IndexAny(rest[1:], ".[") + 1
			if n == 0 {
				n = len(rest)
			}
			v = r.attribute(v, rest[1:n], line)
			rest = rest[n:]
			continue
		}
		n := strings.IndexByte(rest, ']')
		if rest[0] != '[' || n < 0 {
			r.fail(line, "ValueError: Missing ']' in format string")
		}
		var k Value = lit(rest[1:n])
		if i, err := strconv.Atoi(rest[1:n]); err == nil {
			k = integer(i)
		}
		v = r.index(v, k, line)
		rest = rest[n+1:]
	}
	return v
}

// formatSpec formats v as [[fill]align][sign][#][0][width][,][.prec][verb].
func (r *run) formatSpec(v Value, s string, line int) text {
	if s == "" {
		return r.str(v, line)
	}
	sp := spec{prec: -1, fill: lit(" ")}
	const aligns = "<>=^"
	if c := firstRune(s); len(s) > len(c) && strings.IndexByte(aligns, s[len(c)]) >= 0 {
		sp.fill, sp.align = lit(c), s[len(c)]
		s = s[len(c)+1:]
	} else if strings.IndexByte(aligns, s[0]) >= 0 {
		sp.align = s[0]
		s = s[1:]
	}
	eat := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	number := func() int {
		n := 0
		for s != "" && s[0] >= '0' && s[0] <= '9' && n <= maxWidth {
			n = n*10 + int(s[0]-'0')
			s = s[1:]
		}
		return n
	}
	sp.sign = eat("+- ")
	sp.alt = eat("#") != 0
	sp.zero = eat("0") != 0
	sp.width = number()
	sp.comma = eat(",_") != 0
	if eat(".") != 0 {
		sp.prec = number()
	}
	sp.verb = eat("bcdeEfFgGnosxX%")
	if s != "" {
		r.fail(line, "ValueError: Invalid format specifier")
	}
	if t, ok := v.(text); ok || sp.verb == 's' {
		if !ok {
			t = r.str(v, line)
		}
		if sp.prec >= 0 && utf8.RuneCountInString(t.s) > sp.prec {
			t = t.slice(0, runeOffsets(t.s)[sp.prec])
		}
		return r.justify(t, sp, '<', line)
	}
	if !isNumber(v) {
		r.fail(line, "TypeError: unsupported format string passed to %s.__format__", v.pyType())
	}
	if sp.verb == 0 {
		if _, isFloat := v.(float); !isFloat {
			sp.verb = 'd'
		} else if sp.prec >= 0 {
			sp.verb = 'g'
		} else {
			t := r.str(v, line)
			if sp.zero {
				return r.zfill(t, sp.width)
			}
			return r.justify(t, sp, '>', line)
		}
	}
	if sp.verb == 'c' {
		return r.convert(v, sp, line)
	}
	return r.number(v, sp, line)
}
