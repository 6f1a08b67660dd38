package guest

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A member is one key and value of the argument object.
type member struct {
	key  string
	kind jsonKind
	text string // the decoded string, or the literal of a number or boolean; empty for the rest
}

type jsonKind uint8

const (
	kindString jsonKind = iota + 1
	kindNumber
	kindBool
	kindNull
	kindArray
	kindObject
)

func (k jsonKind) describe() string {
	switch k {
	case kindString:
		return "a string"
	case kindNumber:
		return "a number"
	case kindBool:
		return "a boolean"
	case kindNull:
		return "null"
	case kindArray:
		return "an array"
	case kindObject:
		return "an object"
	}
	panic("BUG: guest: unknown kind of JSON value")
}

// parseObject reads one JSON object (RFC 8259) and nothing after it. Arrays and objects inside it end
// the parse with their kind as value, since no built-in tool takes one: the parser does not recurse.
// Text that is not UTF-8 and lone surrogates are errors, because they would end up altered in a file.
func parseObject(in []byte) ([]member, error) {
	p := &parser{in: in}
	p.space()
	if !p.take('{') {
		return nil, p.fail("expected a JSON object")
	}
	var out []member
	p.space()
	if p.take('}') {
		return out, p.end()
	}
	for {
		p.space()
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		p.space()
		if !p.take(':') {
			return nil, p.fail("expected ':' after a key")
		}
		p.space()
		m := member{key: key}
		if m.kind, m.text, err = p.scalar(); err != nil {
			if ae, ok := err.(*ArgError); ok && ae.Arg == "" {
				ae.Arg = key
			}
			return nil, err
		}
		out = append(out, m)
		if m.kind == kindArray || m.kind == kindObject {
			return out, nil
		}
		p.space()
		if p.take(',') {
			continue
		}
		if p.take('}') {
			return out, p.end()
		}
		return nil, p.fail("expected ',' or '}' after the value of " + Quote(key))
	}
}

type parser struct {
	in  []byte
	pos int
}

func (p *parser) fail(want string) error {
	where := " at the end of the input"
	if p.pos < len(p.in) {
		where = " at byte " + strconv.Itoa(p.pos)
	}
	return &ArgError{Want: "invalid JSON: " + want + where}
}

func (p *parser) space() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) take(c byte) bool {
	if p.pos < len(p.in) && p.in[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) end() error {
	p.space()
	if p.pos != len(p.in) {
		return p.fail("unexpected text after the object")
	}
	return nil
}

func (p *parser) scalar() (jsonKind, string, error) {
	if p.pos >= len(p.in) {
		return 0, "", p.fail("expected a value")
	}
	switch c := p.in[p.pos]; {
	case c == '"':
		s, err := p.str()
		return kindString, s, err
	case c == '[':
		return kindArray, "", nil
	case c == '{':
		return kindObject, "", nil
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	for _, w := range []struct {
		word string
		kind jsonKind
	}{{"true", kindBool}, {"false", kindBool}, {"null", kindNull}} {
		if strings.HasPrefix(string(p.in[p.pos:min(len(p.in), p.pos+5)]), w.word) {
			p.pos += len(w.word)
			return w.kind, w.word, nil
		}
	}
	return 0, "", p.fail("expected a value")
}

func (p *parser) number() (jsonKind, string, error) {
	start := p.pos
	p.take('-')
	if !p.take('0') && p.digits() == 0 {
		return 0, "", p.fail("expected a digit")
	}
	if p.take('.') && p.digits() == 0 {
		return 0, "", p.fail("expected a digit")
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if p.digits() == 0 {
			return 0, "", p.fail("expected a digit")
		}
	}
	return kindNumber, string(p.in[start:p.pos]), nil
}

func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.in) && p.in[p.pos] >= '0' && p.in[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

// str reads a string, from its opening quote.
func (p *parser) str() (string, error) {
	if !p.take('"') {
		return "", p.fail("expected a string")
	}
	var b []byte
	for {
		start := p.pos
		for p.pos < len(p.in) && p.in[p.pos] != '"' && p.in[p.pos] != '\\' && p.in[p.pos] >= 0x20 {
			p.pos++
		}
		chunk := p.in[start:p.pos]
		if !utf8.Valid(chunk) {
			return "", p.fail("a string is not UTF-8")
		}
		b = append(b, chunk...)
		if p.take('"') {
			return string(b), nil
		}
		if !p.take('\\') {
			return "", p.fail("expected the end of a string")
		}
		if p.pos >= len(p.in) {
			return "", p.fail("expected an escape")
		}
		c := p.in[p.pos]
		if c == 'u' {
			r, err := p.unicode()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, r)
			continue
		}
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return "", p.fail("unknown escape in a string")
		}
		b = append(b, "\"\\/\b\f\n\r\t"[i])
		p.pos++
	}
}

// unicode reads uXXXX, or two of them for a surrogate pair, from the u.
func (p *parser) unicode() (rune, error) {
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if p.take('\\') && p.pos < len(p.in) && p.in[p.pos] == 'u' {
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, p.fail("half a surrogate pair in a string")
}

func (p *parser) hex4() (rune, error) {
	if p.pos+5 > len(p.in) {
		p.pos = len(p.in)
		return 0, p.fail("expected four hexadecimal digits")
	}
	n, err := strconv.ParseUint(string(p.in[p.pos+1:p.pos+5]), 16, 32)
	if err != nil {
		return 0, p.fail("expected four hexadecimal digits")
	}
	p.pos += 5
	return rune(n), nil
}

// jsonQuote writes s, which is UTF-8, as a JSON string.
func jsonQuote(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r < 0x20:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}
