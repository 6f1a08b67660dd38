package chat

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// looseEnd is how reading a value ended.
type looseEnd uint8

const (
	looseOK     looseEnd = iota
	looseClosed          // closing brackets were missing behind a complete value
	looseCut             // the text ends within a value
	looseBad             // not JSON in any reading
)

// loose reads JSON as small models write it. Whatever has one reading is
// accepted: trailing commas, comments, single quotes, unquoted keys, Python's
// True, False and None, raw line ends in strings, unknown escapes (kept as
// backslash and letter), missing or extra closing brackets, doubled braces.
type loose struct {
	s  string
	at int
	// ended says that something closed the text (an end tag): a number or word
	// that touches the end is complete, and a comma there is a trailing one.
	ended bool
	depth int
	end   looseEnd
}

// looseAll reads all values in s. The values before one that is cut or bad are returned.
func looseAll(s string, ended bool) ([]Value, looseEnd) {
	l := &loose{s: s, ended: ended}
	var out []Value
	worst := looseOK
	for {
		l.space()
		for l.at < len(s) && strings.IndexByte("}],;", s[l.at]) >= 0 {
			l.at++
			l.space()
		}
		if l.at == len(s) {
			return out, worst
		}
		if s[l.at] != '{' && s[l.at] != '[' {
			return out, looseBad
		}
		l.end = looseOK
		v := l.value()
		if l.end >= looseCut {
			return out, l.end
		}
		worst = max(worst, l.end)
		out = append(out, v)
	}
}

// space skips blanks and comments.
func (l *loose) space() {
	for l.at < len(l.s) {
		rest := l.s[l.at:]
		switch {
		case isBlank(rest[0]):
			l.at++
		case rest[0] == '#' || strings.HasPrefix(rest, "//"):
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				l.at += i
			} else {
				l.at = len(l.s)
			}
		case strings.HasPrefix(rest, "/*"):
			if i := strings.Index(rest[2:], "*/"); i >= 0 {
				l.at += i + 4
			} else {
				l.at = len(l.s)
			}
		default:
			return
		}
	}
}

// stop records how reading ended; the worst counts.
func (l *loose) stop(e looseEnd) Value {
	l.end = max(l.end, e)
	return none{}
}

func (l *loose) value() Value {
	l.space()
	if l.at == len(l.s) {
		return l.stop(looseCut)
	}
	if l.depth++; l.depth > maxJSONDepth {
		return l.stop(looseBad)
	}
	defer func() { l.depth-- }()
	switch c := l.s[l.at]; {
	case c == '{':
		return l.object()
	case c == '[':
		return l.array()
	case c == '"' || c == '\'':
		s, ok := l.str(c)
		if !ok {
			return l.stop(looseCut)
		}
		return outside(s)
	}
	n := strings.IndexFunc(l.s[l.at:], func(c rune) bool {
		return c != '-' && c != '+' && c != '.' && !isNameRune(c)
	})
	if n < 0 {
		n = len(l.s) - l.at
		if !l.ended {
			return l.stop(looseCut)
		}
	}
	word := l.s[l.at : l.at+n]
	l.at += n
	switch word {
	case "true", "True":
		return boolean(true)
	case "false", "False":
		return boolean(false)
	case "null", "None":
		return none{}
	}
	if !jsonNumber(word) {
		return l.stop(looseBad)
	}
	v, err := numberValue(strings.TrimPrefix(word, "+"))
	if f, ok := v.(float); err != nil || ok && math.IsInf(float64(f), 0) {
		return l.stop(looseBad)
	}
	return v
}

// jsonNumber says whether s is a number, in JSON or with a plus or a bare point.
func jsonNumber(s string) bool {
	if s == "" || strings.ContainsAny(s, "_xXpPnNiI") {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// next looks at what stands behind an item: more says that another may follow.
func (l *loose) next(closer byte) (more bool) {
	l.space()
	if l.at == len(l.s) {
		l.stop(looseClosed)
		return false
	}
	switch c := l.s[l.at]; {
	case c == closer:
		l.at++
		return false
	case c == ',':
		for l.at < len(l.s) && l.s[l.at] == ',' {
			l.at++
			l.space()
		}
		if l.at == len(l.s) {
			if l.ended {
				l.stop(looseClosed)
			} else {
				l.stop(looseCut)
			}
			return false
		}
		if l.s[l.at] == closer {
			l.at++
			return false
		}
		return true
	case c == '}' || c == ']':
		// The closer of something further out: this one is missing.
		l.stop(looseClosed)
		return false
	case c == '"' || c == '\'' || closer == ']' && (c == '{' || c == '['):
		return true // a missing comma
	case closer == '}' && c == '{':
		// The next object begins: the closers of this one are missing.
		l.stop(looseClosed)
		return false
	}
	l.stop(looseBad)
	return false
}

func (l *loose) object() Value {
	m := NewMap()
	l.at++
	l.space()
	if l.at < len(l.s) && l.s[l.at] == '{' {
		// {{...}}: braces doubled, as one model's own template shows them.
		v := l.value()
		l.space()
		if l.at < len(l.s) && l.s[l.at] == '}' {
			l.at++
		}
		return v
	}
	if l.at < len(l.s) && l.s[l.at] == '}' {
		l.at++
		return m
	}
	if l.at == len(l.s) {
		return l.stop(looseCut)
	}
	for {
		key, ok := l.key()
		if !ok {
			return none{}
		}
		l.space()
		if l.at == len(l.s) {
			return l.stop(looseCut)
		}
		if l.s[l.at] != ':' {
			return l.stop(looseBad)
		}
		l.at++
		v := l.value()
		if l.end >= looseCut {
			return none{}
		}
		m.set(hashKey{'s', key}, outside(key), v)
		if !l.next('}') {
			return m
		}
	}
}

func (l *loose) key() (string, bool) {
	if c := l.s[l.at]; c == '"' || c == '\'' {
		s, ok := l.str(c)
		if !ok {
			l.stop(looseCut)
		}
		return s, ok
	}
	n := strings.IndexFunc(l.s[l.at:], func(c rune) bool { return c != '-' && !isNameRune(c) })
	if n < 0 {
		l.stop(looseCut)
		return "", false
	}
	if n == 0 {
		l.stop(looseBad)
		return "", false
	}
	s := l.s[l.at : l.at+n]
	l.at += n
	return s, true
}

func (l *loose) array() Value {
	out := NewList()
	l.at++
	l.space()
	if l.at < len(l.s) && l.s[l.at] == ']' {
		l.at++
		return out
	}
	for {
		v := l.value()
		if l.end >= looseCut {
			return none{}
		}
		out.Append(v)
		if !l.next(']') {
			return out
		}
	}
}

// str reads a quoted string, false where it has no end.
func (l *loose) str(quote byte) (string, bool) {
	var b strings.Builder
	s := l.s
	i := l.at + 1
	for i < len(s) {
		c := s[i]
		if c == quote {
			l.at = i + 1
			return strings.ToValidUTF8(b.String(), "\ufffd"), true
		}
		if c != '\\' {
			b.WriteByte(c)
			i++
			continue
		}
		if i+1 == len(s) {
			break
		}
		i += 2
		switch e := s[i-1]; e {
		case '"', '\\', '/', '\'':
			b.WriteByte(e)
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			c, n := unicodeEscape(s[i:])
			if n == 0 {
				b.WriteString(`\u`)
				continue
			}
			b.WriteRune(c)
			i += n
		default:
			b.WriteByte('\\')
			b.WriteByte(e)
		}
	}
	l.at = len(s)
	return "", false
}

// unicodeEscape reads four hexadecimal digits, and a second escape where the first
// is half a character. n is the length read, 0 where the digits are missing.
func unicodeEscape(s string) (c rune, n int) {
	hex := func(s string) (rune, bool) {
		if len(s) < 4 {
			return 0, false
		}
		v, err := strconv.ParseUint(s[:4], 16, 32)
		return rune(v), err == nil
	}
	c, ok := hex(s)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(c) {
		if len(s) >= 10 && s[4] == '\\' && s[5] == 'u' {
			if d, ok := hex(s[6:]); ok {
				if full := utf16.DecodeRune(c, d); full != utf8.RuneError {
					return full, 10
				}
			}
		}
		return utf8.RuneError, 4
	}
	return c, 4
}

// isBlank says whether a byte is white space of its own, not part of a character.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
