package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of values.
const maxDepth = 64

// kind is the type of a value.
type kind string

const (
	isObject  kind = "an object"
	isArray   kind = "an array"
	isString  kind = "a string"
	isNumber  kind = "a number"
	isBoolean kind = "true or false"
	isNull    kind = "null"
)

// value is a JSON value with the place where it begins.
type value struct {
	at      int // byte offset
	kind    kind
	text    string // of a string, or a number as it is written
	items   []value
	members []member
}

type member struct {
	at    int // of the key
	key   string
	value value
}

// parser reads JSON with // and /* */ comments and commas before a closing bracket.
type parser struct {
	file string
	src  string
	pos  int
}

// parse reads a whole file.
func parse(file string, b []byte) (value, *parser, error) {
	p := &parser{file: file, src: strings.TrimPrefix(string(b), "\ufeff")}
	if !utf8.ValidString(p.src) {
		for i, r := range p.src {
			if r == utf8.RuneError && !strings.HasPrefix(p.src[i:], "\ufffd") {
				return value{}, p, p.errorAt(i, "not valid UTF-8")
			}
		}
	}
	v, err := p.value(0)
	if err != nil {
		return value{}, p, err
	}
	if err := p.space(); err != nil {
		return value{}, p, err
	}
	if p.pos < len(p.src) {
		return value{}, p, p.errorAt(p.pos, "text after the end of the value")
	}
	return v, p, nil
}

// Error is what is wrong with a settings file.
type Error struct {
	File         string
	Line, Column int // from 1; columns count characters
	Reason       string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: line %d, column %d: %s", e.File, e.Line, e.Column, e.Reason)
}

func (p *parser) errorAt(at int, format string, args ...any) error {
	at = min(at, len(p.src))
	before := p.src[:at]
	line := strings.Count(before, "\n") + 1
	col := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &Error{File: p.file, Line: line, Column: col, Reason: fmt.Sprintf(format, args...)}
}

// space skips white space and comments.
func (p *parser) space() error {
	for p.pos < len(p.src) {
		rest := p.src[p.pos:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			p.pos++
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.pos += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return p.errorAt(p.pos, "comment without end")
			}
			p.pos += end + 4
		default:
			return nil
		}
	}
	return nil
}

// next skips space and returns the next byte, 0 at the end.
func (p *parser) next() (byte, error) {
	if err := p.space(); err != nil {
		return 0, err
	}
	if p.pos >= len(p.src) {
		return 0, nil
	}
	return p.src[p.pos], nil
}

func (p *parser) value(depth int) (value, error) {
	c, err := p.next()
	if err != nil {
		return value{}, err
	}
	v := value{at: p.pos}
	switch {
	case depth > maxDepth:
		return v, p.errorAt(p.pos, "nested too deeply")
	case p.pos >= len(p.src):
		return v, p.errorAt(p.pos, "expected a value, found the end of the file")
	case c == '{':
		return p.object(v, depth)
	case c == '[':
		return p.array(v, depth)
	case c == '"':
		v.kind = isString
		v.text, err = p.str()
		return v, err
	case c == '-' || c >= '0' && c <= '9':
		v.kind = isNumber
		v.text, err = p.number()
		return v, err
	}
	switch word := p.word(); word {
	case "true", "false":
		v.kind = isBoolean
	case "null":
		v.kind = isNull
	default:
		if word == "" {
			r, _ := utf8.DecodeRuneInString(p.src[v.at:])
			return v, p.errorAt(v.at, "expected a value, found %q", r)
		}
		return v, p.errorAt(v.at, "expected a value, found %s (text needs double quotes)", word)
	}
	return v, nil
}

// word takes letters and digits.
func (p *parser) word() string {
	start := p.pos
	for p.pos < len(p.src) {
		c := p.src[p.pos] | 0x20
		if c < 'a' || c > 'z' {
			if c < '0' || c > '9' {
				break
			}
		}
		p.pos++
	}
	return p.src[start:p.pos]
}

func (p *parser) number() (string, error) {
	start := p.pos
	for p.pos < len(p.src) && strings.IndexByte("+-.0123456789eE", p.src[p.pos]) >= 0 {
		p.pos++
	}
	s := p.src[start:p.pos]
	if !json.Valid([]byte(s)) {
		return "", p.errorAt(start, "%s is not a number", s)
	}
	return s, nil
}

func (p *parser) str() (string, error) {
	start := p.pos
	for p.pos++; p.pos < len(p.src); p.pos++ {
		switch p.src[p.pos] {
		case '\\':
			p.pos++
		case '\n':
			return "", p.errorAt(start, "text without closing quote")
		case '"':
			p.pos++
			var s string
			if err := json.Unmarshal([]byte(p.src[start:p.pos]), &s); err != nil {
				return "", p.errorAt(start, "malformed text: %v", err)
			}
			return s, nil
		}
	}
	return "", p.errorAt(start, "text without closing quote")
}

func (p *parser) array(v value, depth int) (value, error) {
	v.kind = isArray
	p.pos++
	for {
		c, err := p.next()
		if err != nil {
			return v, err
		}
		if c == ']' {
			p.pos++
			return v, nil
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
		if done, err := p.comma(']'); done || err != nil {
			return v, err
		}
	}
}

func (p *parser) object(v value, depth int) (value, error) {
	v.kind = isObject
	p.pos++
	seen := map[string]bool{}
	for {
		c, err := p.next()
		if err != nil {
			return v, err
		}
		if c == '}' {
			p.pos++
			return v, nil
		}
		if c != '"' {
			return v, p.errorAt(p.pos, "expected a key in double quotes or }")
		}
		m := member{at: p.pos}
		if m.key, err = p.str(); err != nil {
			return v, err
		}
		if seen[m.key] {
			return v, p.errorAt(m.at, "%q stands here twice", m.key)
		}
		seen[m.key] = true
		if c, err = p.next(); err != nil {
			return v, err
		}
		if c != ':' {
			return v, p.errorAt(p.pos, "expected : after %q", m.key)
		}
		p.pos++
		if m.value, err = p.value(depth + 1); err != nil {
			return v, err
		}
		v.members = append(v.members, m)
		if done, err := p.comma('}'); done || err != nil {
			return v, err
		}
	}
}

// comma takes the comma after an element, or the closing bracket.
func (p *parser) comma(closing byte) (done bool, err error) {
	c, err := p.next()
	if err != nil {
		return false, err
	}
	switch c {
	case ',':
		p.pos++
		return false, nil
	case closing:
		p.pos++
		return true, nil
	}
	return false, p.errorAt(p.pos, "expected , or %c", closing)
}
