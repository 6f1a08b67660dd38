package chat

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF        tokenKind = iota
	tokData                 // literal output
	tokPrintBegin           // {{
	tokPrintEnd             // }}
	tokBlockBegin           // {%
	tokBlockEnd             // %}
	tokName
	tokString
	tokNumber
	tokOp
)

type token struct {
	kind tokenKind
	s    string // text of data, names, operators; value of strings
	num  Value  // value of numbers
	line int
}

// describe names a token in an error message.
func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template text"
	case tokPrintBegin:
		return "'{{'"
	case tokPrintEnd:
		return "end of print statement"
	case tokBlockBegin:
		return "'{%'"
	case tokBlockEnd:
		return "end of statement block"
	case tokString:
		return "a string"
	case tokNumber:
		return "a number"
	}
	return "'" + t.s + "'"
}

// maxSource bounds the size of a template. The largest in use are below 32 KiB.
const maxSource = 1 << 20

type lexer struct {
	src  string
	at   int
	line int
	toks []token
	// atLineStart says that the last thing read ended in a newline, so that
	// blanks before a tag are a line of their own.
	atLineStart bool
}

// lex cuts a template into tokens and applies the whitespace rules: one newline
// at the very end is dropped, trim_blocks drops the newline after a block tag,
// lstrip_blocks the blanks before one, "-" strips everything on its side and "+"
// turns the rule off.
func lex(src string) []token {
	if len(src) > maxSource {
		panic(&Error{Line: 1, Msg: fmt.Sprintf("template of %d bytes, the limit is %d", len(src), maxSource)})
	}
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	src = strings.TrimSuffix(src, "\n")
	l := &lexer{src: src, line: 1, atLineStart: true}
	for l.at < len(l.src) {
		l.root()
	}
	l.emit(token{kind: tokEOF})
	return l.toks
}

func (l *lexer) fail(format string, a ...any) {
	panic(&Error{Line: l.line, Msg: fmt.Sprintf(format, a...)})
}

func (l *lexer) emit(t token) {
	t.line = l.line
	l.toks = append(l.toks, t)
}

// advance moves n bytes on.
func (l *lexer) advance(n int) {
	s := l.src[l.at : l.at+n]
	l.line += strings.Count(s, "\n")
	if n > 0 {
		l.atLineStart = s[n-1] == '\n'
	}
	l.at += n
}

func (l *lexer) skipSpace() {
	n := len(l.src) - l.at - len(strings.TrimLeftFunc(l.src[l.at:], unicode.IsSpace))
	l.advance(n)
}

// data emits text up to the tag at offset end, shortened by the tag's sign.
func (l *lexer) data(end int, sign byte, lstrip bool) {
	s := l.src[l.at:end]
	out := s
	if sign == '-' {
		out = strings.TrimRightFunc(s, unicode.IsSpace)
	} else if sign != '+' && lstrip {
		i := strings.LastIndexByte(s, '\n') + 1
		if (i > 0 || l.atLineStart) && strings.TrimSpace(s[i:]) == "" {
			out = s[:i]
		}
	}
	if out != "" {
		l.emit(token{kind: tokData, s: out})
	}
	l.advance(end - l.at)
}

// sign reads the character behind an opening delimiter of two bytes.
func (l *lexer) sign(at int) byte {
	if at+2 < len(l.src) && (l.src[at+2] == '-' || l.src[at+2] == '+') {
		return l.src[at+2]
	}
	return 0
}

// root reads literal text and the tag behind it.
func (l *lexer) root() {
	at := l.at
	for {
		i := strings.IndexByte(l.src[at:], '{')
		if i < 0 || at+i+1 >= len(l.src) {
			l.data(len(l.src), '+', false)
			return
		}
		at += i
		if c := l.src[at+1]; c == '{' || c == '%' || c == '#' {
			break
		}
		at++
	}
	sign := l.sign(at)
	open := 2
	if sign != 0 {
		open = 3
	}
	switch l.src[at+1] {
	case '{':
		l.data(at, sign, false)
		l.advance(open)
		l.emit(token{kind: tokPrintBegin})
		l.code('}', tokPrintEnd)
	case '#':
		l.data(at, sign, true)
		l.advance(open)
		i := strings.Index(l.src[l.at:], "#}")
		if i < 0 {
			l.fail("missing end of comment tag")
		}
		end := byte(0)
		if i > 0 {
			end = l.src[l.at+i-1]
		}
		l.advance(i + 2)
		l.afterBlock(end)
	default:
		if l.raw(at, sign, open) {
			return
		}
		l.data(at, sign, true)
		l.advance(open)
		l.emit(token{kind: tokBlockBegin})
		l.code('%', tokBlockEnd)
	}
}

// afterBlock applies the sign in front of a closing delimiter.
func (l *lexer) afterBlock(sign byte) {
	switch sign {
	case '-':
		l.skipSpace()
	case '+':
	default:
		if strings.HasPrefix(l.src[l.at:], "\n") {
			l.advance(1)
		}
	}
}

// tag reads "{% name %}" at offset at (behind the opening delimiter and its
// sign) and returns the sign before the end and the length up to the end.
func (l *lexer) tag(at int, name string) (sign byte, end int, ok bool) {
	s := strings.TrimLeftFunc(l.src[at:], unicode.IsSpace)
	if !strings.HasPrefix(s, name) {
		return 0, 0, false
	}
	s = strings.TrimLeftFunc(s[len(name):], unicode.IsSpace)
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign = s[0]
		s = s[1:]
	}
	if !strings.HasPrefix(s, "%}") {
		return 0, 0, false
	}
	return sign, len(l.src) - len(s) + 2, true
}

// raw reads a raw block, if one starts at offset at.
func (l *lexer) raw(at int, sign byte, open int) bool {
	after, end, ok := l.tag(at+open, "raw")
	if !ok || after == '+' {
		return false
	}
	l.data(at, sign, true)
	l.advance(end - l.at)
	if after == '-' {
		l.skipSpace()
	}
	for i := l.at; ; i += 2 {
		j := strings.Index(l.src[i:], "{%")
		if j < 0 {
			l.fail("missing end of raw directive")
		}
		i += j
		sign := l.sign(i)
		open := 2
		if sign != 0 {
			open = 3
		}
		after, end, ok := l.tag(i+open, "endraw")
		if !ok {
			continue
		}
		l.data(i, sign, true)
		l.advance(end - l.at)
		l.afterBlock(after)
		return true
	}
}

// operators, longest first.
var operators = [...]string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// code reads the inside of a tag up to its end: closer and '}'.
func (l *lexer) code(closer byte, end tokenKind) {
	var open []byte // brackets not yet closed
	for {
		l.skipSpace()
		s := l.src[l.at:]
		if s == "" {
			return // the parser reports the missing end
		}
		if len(open) == 0 {
			sign := byte(0)
			if s[0] == '-' || s[0] == '+' && closer == '%' {
				sign = s[0]
				s = s[1:]
			}
			if len(s) >= 2 && s[0] == closer && s[1] == '}' {
				l.emit(token{kind: end})
				l.advance(len(l.src) - l.at - len(s) + 2)
				if closer == '%' || sign == '-' {
					l.afterBlock(sign)
				}
				return
			}
			s = l.src[l.at:]
		}
		switch c := s[0]; {
		case c == '\'' || c == '"':
			l.str(c)
		case c >= '0' && c <= '9':
			l.number()
		case c == '_' || c >= 0x80 || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			l.name()
		default:
			op := ""
			for _, o := range operators {
				if strings.HasPrefix(s, o) {
					op = o
					break
				}
			}
			switch op {
			case "":
				l.fail("unexpected character %q", firstRune(s))
			case "(", "[", "{":
				open = append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[op])
			case ")", "]", "}":
				if len(open) == 0 {
					l.fail("unexpected '%s'", op)
				}
				if want := open[len(open)-1]; want != op[0] {
					l.fail("unexpected '%s', expected '%c'", op, want)
				}
				open = open[:len(open)-1]
			}
			l.emit(token{kind: tokOp, s: op})
			l.advance(len(op))
		}
	}
}

func firstRune(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

func isNameRune(c rune) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 && (unicode.IsLetter(c) || unicode.IsDigit(c))
}

func (l *lexer) name() {
	s := l.src[l.at:]
	n := strings.IndexFunc(s, func(c rune) bool { return !isNameRune(c) })
	if n < 0 {
		n = len(s)
	}
	if n == 0 {
		l.fail("unexpected character %q", firstRune(s))
	}
	l.emit(token{kind: tokName, s: s[:n]})
	l.advance(n)
}

// digits is the length of digits with single underscores between them.
func digits(s string, in string) int {
	n := 0
	for n < len(s) {
		if strings.IndexByte(in, s[n]) >= 0 {
			n++
		} else if s[n] == '_' && n > 0 && n+1 < len(s) && strings.IndexByte(in, s[n+1]) >= 0 {
			n += 2
		} else {
			break
		}
	}
	return n
}

const decimal = "0123456789"

func (l *lexer) number() {
	s := l.src[l.at:]
	if len(s) > 2 && s[0] == '0' {
		if in, base := map[byte]string{'x': "0123456789abcdefABCDEF", 'o': "01234567", 'b': "01"}[s[1]|0x20], map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]|0x20]; base != 0 {
			if n := digits(s[2:], in); n > 0 {
				l.integer(s[2:2+n], base, n+2)
				return
			}
		}
	}
	n := digits(s, decimal)
	end, isFloat := n, false
	if end+1 < len(s) && s[end] == '.' && s[end+1] >= '0' && s[end+1] <= '9' {
		end += 1 + digits(s[end+1:], decimal)
		isFloat = true
	}
	if end < len(s) && s[end]|0x20 == 'e' {
		e := end + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := digits(s[min(e, len(s)):], decimal); d > 0 {
			end = e + d
			isFloat = true
		}
	}
	// A number right behind a point is an index: x.0.1
	if k := len(l.toks); k > 0 && l.toks[k-1].kind == tokOp && l.toks[k-1].s == "." {
		isFloat = false
	}
	if !isFloat {
		l.integer(s[:n], 10, n)
		return
	}
	if end > maxNumberLen {
		l.fail("number of %d digits", end)
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s[:end], "_", ""), 64)
	if err != nil && f == 0 {
		l.fail("number %q", s[:end])
	}
	l.emit(token{kind: tokNumber, num: float(f)})
	l.advance(end)
}

func (l *lexer) integer(s string, base, n int) {
	if n > maxNumberLen {
		l.fail("number of %d digits", n)
	}
	b, ok := new(big.Int).SetString(strings.ReplaceAll(s, "_", ""), base)
	if !ok {
		l.fail("number %q", s)
	}
	l.emit(token{kind: tokNumber, num: normInt(b)})
	l.advance(n)
}

// str reads a string literal with Python's escapes.
func (l *lexer) str(quote byte) {
	s := l.src[l.at:]
	i := 1
	for i < len(s) && s[i] != quote {
		if s[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(s) {
		l.fail("unexpected character %q: the string has no end", string(quote))
	}
	v, err := unescape(s[1:i])
	if err != nil {
		l.fail("string literal: %v", err)
	}
	l.emit(token{kind: tokString, s: v})
	l.advance(i + 1)
}

// unescape resolves the escapes of a Python string literal. Unknown ones stay as
// they are.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		c := s[i+1]
		i += 2
		if j := strings.IndexByte(`abfnrtv\'"`, c); j >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\'\""[j])
			continue
		}
		switch {
		case c == '\n':
		case c >= '0' && c <= '7':
			n := 1
			for n < 3 && i-1+n < len(s) && s[i-1+n] >= '0' && s[i-1+n] <= '7' {
				n++
			}
			v, _ := strconv.ParseUint(s[i-1:i-1+n], 8, 32)
			b.WriteRune(rune(v))
			i += n - 1
		case c == 'x' || c == 'u' || c == 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+n > len(s) {
				return "", fmt.Errorf(`\%c needs %d hexadecimal digits`, c, n)
			}
			v, err := strconv.ParseUint(s[i:i+n], 16, 32)
			if err != nil || v > unicode.MaxRune {
				return "", fmt.Errorf(`\%c needs %d hexadecimal digits`, c, n)
			}
			b.WriteRune(rune(v))
			i += n
		case c == 'N':
			return "", fmt.Errorf(`\N is not supported`)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
