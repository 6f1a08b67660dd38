package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// strFunc, mapFunc and listFunc are methods of the built-in types.
type (
	strFunc  = func(r *run, line int, s text, a args) Value
	mapFunc  = func(r *run, line int, m *Map, a args) Value
	listFunc = func(r *run, line int, l *List, a args) Value
)

// strArg is argument v as a string; def where it is missing.
func (r *run) strArg(v Value, def string, what string, line int) text {
	switch v := v.(type) {
	case nil:
		return lit(def)
	case text:
		return v
	}
	r.fail(line, "TypeError: %s needs a string, not '%s'", what, v.pyType())
	return text{}
}

// intArg is argument v as an integer; def where it is missing.
func (r *run) intArg(v Value, def int, what string, line int) int {
	if v == nil {
		return def
	}
	n, ok := intOf(v)
	if !ok {
		r.fail(line, "TypeError: %s needs an integer, not '%s'", what, v.pyType())
	}
	return n
}

// strMethod is a method of str, nil where there is none of that name.
func strMethod(name string) strFunc {
	switch name {
	case "upper", "lower", "title", "capitalize", "swapcase", "casefold":
		return func(r *run, line int, s text, a args) Value {
			a.bind(r, line, name)
			r.charge(len(s.s))
			return s.remade(changeCase(name, s.s))
		}
	case "strip", "lstrip", "rstrip":
		return func(r *run, line int, s text, a args) Value {
			chars := a.bind(r, line, name, "chars")[0]
			return r.strip(s, chars, name != "rstrip", name != "lstrip", line)
		}
	case "split", "rsplit":
		return func(r *run, line int, s text, a args) Value {
			b := a.bind(r, line, name, "sep", "maxsplit")
			n := r.intArg(b[1], -1, name, line)
			if _, ok := b[0].(none); ok || b[0] == nil {
				return NewList(r.fields(s, n, name == "rsplit")...)
			}
			sep := r.strArg(b[0], "", name, line)
			if sep.s == "" {
				r.fail(line, "ValueError: empty separator")
			}
			if name == "rsplit" && n >= 0 {
				return NewList(r.rsplit(s, sep.s, n)...)
			}
			return NewList(r.splitText(s, sep.s, n)...)
		}
	case "splitlines":
		return func(r *run, line int, s text, a args) Value {
			keep := a.bind(r, line, name, "keepends")[0]
			return NewList(r.lines(s, keep != nil && truth(keep))...)
		}
	case "join":
		return func(r *run, line int, s text, a args) Value {
			over := a.bind(r, line, name, "iterable")[0]
			if over == nil {
				r.fail(line, "TypeError: join needs an argument")
			}
			b := textBuilder{run: r}
			for i, it := range r.iterate(over, line) {
				t, ok := it.(text)
				if !ok {
					r.fail(line, "TypeError: sequence item %d: expected str instance, %s found", i, it.pyType())
				}
				if i > 0 {
					b.add(s)
				}
				b.add(t)
			}
			return b.text()
		}
	case "replace":
		return func(r *run, line int, s text, a args) Value {
			b := a.bind(r, line, name, "old", "new", "count")
			if b[0] == nil || b[1] == nil {
				r.fail(line, "TypeError: replace needs two arguments")
			}
			return r.replaceText(s, r.strArg(b[0], "", name, line), r.strArg(b[1], "", name, line), r.intArg(b[2], -1, name, line))
		}
	case "startswith", "endswith":
		return func(r *run, line int, s text, a args) Value {
			b := a.bind(r, line, name, "prefix", "start", "end")
			if b[1] != nil || b[2] != nil {
				s = r.window(s, b[1], b[2], line)
			}
			has := strings.HasPrefix
			if name == "endswith" {
				has = strings.HasSuffix
			}
			if l, ok := b[0].(*List); ok && l.form == formTuple {
				for _, it := range l.items {
					if has(s.s, r.strArg(it, "", name, line).s) {
						return boolean(true)
					}
				}
				return boolean(false)
			}
			if b[0] == nil {
				r.fail(line, "TypeError: %s needs an argument", name)
			}
			return boolean(has(s.s, r.strArg(b[0], "", name, line).s))
		}
	case "find", "rfind", "index", "rindex", "count":
		return func(r *run, line int, s text, a args) Value {
			b := a.bind(r, line, name, "sub", "start", "end")
			if b[0] == nil {
				r.fail(line, "TypeError: %s needs an argument", name)
			}
			return r.findText(name, s, r.strArg(b[0], "", name, line).s, b[1], b[2], line)
		}
	case "partition", "rpartition":
		return func(r *run, line int, s text, a args) Value {
			sep := r.strArg(a.bind(r, line, name, "sep")[0], "", name, line)
			if sep.s == "" {
				r.fail(line, "ValueError: empty separator")
			}
			r.charge(len(s.s))
			i := strings.Index(s.s, sep.s)
			if name == "rpartition" {
				i = strings.LastIndex(s.s, sep.s)
			}
			switch {
			case i >= 0:
				return tuple(s.slice(0, i), s.slice(i, i+len(sep.s)), s.from(i+len(sep.s)))
			case name == "partition":
				return tuple(s, text{}, text{})
			}
			return tuple(text{}, text{}, s)
		}
	case "removeprefix", "removesuffix":
		return func(r *run, line int, s text, a args) Value {
			x := r.strArg(a.bind(r, line, name, "affix")[0], "", name, line).s
			switch {
			case name == "removeprefix" && strings.HasPrefix(s.s, x):
				return s.from(len(x))
			case name == "removesuffix" && strings.HasSuffix(s.s, x):
				return s.slice(0, len(s.s)-len(x))
			}
			return s
		}
	case "center", "ljust", "rjust", "zfill":
		return func(r *run, line int, s text, a args) Value {
			b := a.bind(r, line, name, "width", "fillchar")
			w := r.intArg(b[0], 0, name, line)
			fill := r.strArg(b[1], " ", name, line)
			if name == "zfill" {
				return r.zfill(s, w)
			}
			return r.pad(s, w, fill, name)
		}
	case "expandtabs":
		return func(r *run, line int, s text, a args) Value {
			return r.expandTabs(s, r.intArg(a.bind(r, line, name, "tabsize")[0], 8, name, line))
		}
	case "format":
		return func(r *run, line int, s text, a args) Value { return r.formatBraces(s, a, line) }
	case "isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower", "istitle", "isnumeric", "isdecimal", "isascii", "isidentifier":
		return func(r *run, line int, s text, a args) Value {
			a.bind(r, line, name)
			r.scan(len(s.s))
			return boolean(classify(name, s.s))
		}
	}
	return nil
}

func changeCase(name, s string) string {
	switch name {
	case "upper":
		return upper(s)
	case "lower", "casefold":
		return strings.ToLower(s)
	case "capitalize":
		for i, c := range s {
			if i > 0 {
				return string(unicode.ToTitle(firstOf(s))) + strings.ToLower(s[i:])
			}
			_ = c
		}
		return upper(s)
	case "swapcase":
		return strings.Map(func(c rune) rune {
			if unicode.IsUpper(c) {
				return unicode.ToLower(c)
			}
			return unicode.ToUpper(c)
		}, s)
	}
	// title: a letter behind anything that is not a letter starts a word.
	var b strings.Builder
	inWord := false
	for _, c := range s {
		if inWord {
			b.WriteRune(unicode.ToLower(c))
		} else {
			b.WriteRune(unicode.ToTitle(c))
		}
		inWord = unicode.IsLetter(c)
	}
	return b.String()
}

func firstOf(s string) rune {
	for _, c := range s {
		return c
	}
	return 0
}

// upper is Python's upper: sharp s becomes two letters.
func upper(s string) string {
	return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS")
}

func isPySpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

func (r *run) strip(s text, chars Value, left, right bool, line int) text {
	r.scan(len(s.s))
	if _, ok := chars.(none); ok || chars == nil {
		return trimText(s, left, right, isPySpace)
	}
	set := r.strArg(chars, "", "strip", line).s
	r.chargeTimes(len(set), 1+len(s.s)/64)
	return trimText(s, left, right, func(c rune) bool { return strings.ContainsRune(set, c) })
}

// fields splits at runs of blanks, at most n times where n >= 0.
func (r *run) fields(s text, n int, fromRight bool) []Value {
	r.scan(len(s.s))
	var out []Value
	if fromRight && n >= 0 {
		s = trimText(s, false, true, isPySpace)
		for n > 0 && s.s != "" {
			i := strings.LastIndexFunc(s.s, isPySpace)
			if i < 0 {
				break
			}
			_, w := decodeAt(s.s, i)
			out = append([]Value{s.from(i + w)}, out...)
			r.chargeTimes(cellBytes, len(out))
			s = trimText(s.slice(0, i), false, true, isPySpace)
			n--
		}
		if s = trimText(s, true, false, isPySpace); s.s != "" {
			out = append([]Value{s}, out...)
		}
		return out
	}
	s = trimText(s, true, false, isPySpace)
	for s.s != "" {
		i := strings.IndexFunc(s.s, isPySpace)
		if i < 0 || n == 0 {
			out = append(out, s)
			break
		}
		out = append(out, s.slice(0, i))
		r.charge(cellBytes)
		s = trimText(s.from(i), true, false, isPySpace)
		n--
	}
	return out
}

func decodeAt(s string, i int) (rune, int) {
	for j, c := range s[i:] {
		if j > 0 {
			return firstOf(s[i:]), j
		}
		_ = c
	}
	return firstOf(s[i:]), len(s) - i
}

func (r *run) rsplit(s text, sep string, n int) []Value {
	r.scan(len(s.s))
	var rev []Value
	for ; n > 0; n-- {
		i := strings.LastIndex(s.s, sep)
		if i < 0 {
			break
		}
		rev = append(rev, s.from(i+len(sep)))
		r.charge(cellBytes)
		s = s.slice(0, i)
	}
	rev = append(rev, s)
	out := make([]Value, 0, len(rev))
	for i := len(rev) - 1; i >= 0; i-- {
		out = append(out, rev[i])
	}
	return out
}

// lines splits at line ends, as str.splitlines.
func (r *run) lines(s text, keep bool) []Value {
	r.scan(len(s.s))
	var out []Value
	start := 0
	for i := 0; i < len(s.s); {
		c, n := decodeAt(s.s[:min(len(s.s), i+4)], i)
		if !strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", c) {
			i += n
			continue
		}
		end := i + n
		if c == '\r' && end < len(s.s) && s.s[end] == '\n' {
			end++
		}
		if keep {
			i = end
		}
		out = append(out, s.slice(start, i))
		r.charge(cellBytes)
		i, start = end, end
	}
	if start < len(s.s) {
		out = append(out, s.from(start))
	}
	return out
}

// window is s[start:end] for the methods that take both.
func (r *run) window(s text, start, end Value, line int) text {
	opt := func(v Value) Value {
		if v == nil {
			return none{}
		}
		return v
	}
	return r.slice(s, opt(start), opt(end), none{}, line).(text)
}

func (r *run) findText(name string, s text, sub string, start, end Value, line int) Value {
	w := s
	skip := 0
	if start != nil || end != nil {
		w = r.window(s, start, end, line)
		n := len([]rune(s.s))
		if i, ok := intOf(start); ok && start != nil {
			if i < 0 {
				i += n
			}
			skip = max(0, min(i, n))
		}
		r.charge(4 * len(s.s))
	}
	r.scan(len(s.s))
	i := 0
	switch name {
	case "count":
		return integer(strings.Count(w.s, sub))
	case "find", "index":
		i = strings.Index(w.s, sub)
	default:
		i = strings.LastIndex(w.s, sub)
	}
	if i < 0 {
		if name == "index" || name == "rindex" {
			r.fail(line, "ValueError: substring not found")
		}
		return integer(-1)
	}
	return integer(skip + utf8.RuneCountInString(w.s[:i]))
}

func (r *run) pad(s text, w int, fill text, how string) text {
	n := w - utf8.RuneCountInString(s.s)
	if n <= 0 {
		return s
	}
	left := 0
	switch how {
	case "rjust":
		left = n
	case "center":
		left = n/2 + n&w&1
	}
	b := textBuilder{run: r}
	b.add(r.repeat(fill, left))
	b.add(s)
	b.add(r.repeat(fill, n-left))
	return b.text()
}

func (r *run) zfill(s text, w int) text {
	n := w - utf8.RuneCountInString(s.s)
	if n <= 0 {
		return s
	}
	sign := 0
	if strings.HasPrefix(s.s, "-") || strings.HasPrefix(s.s, "+") {
		sign = 1
	}
	b := textBuilder{run: r}
	b.add(s.slice(0, sign))
	b.add(r.repeat(lit("0"), n))
	b.add(s.from(sign))
	return b.text()
}

func (r *run) expandTabs(s text, size int) text {
	b := textBuilder{run: r}
	col, start := 0, 0
	for i, c := range s.s {
		switch c {
		case '\t':
			b.add(s.slice(start, i))
			if size > 0 {
				n := size - col%size
				b.add(r.repeat(lit(" "), n))
				col += n
			}
			start = i + 1
		case '\n', '\r':
			col = 0
		default:
			col++
		}
	}
	b.add(s.from(start))
	return b.text()
}

// classify answers the is... methods.
func classify(name, s string) bool {
	if s == "" {
		return name == "isascii"
	}
	cased := false
	prev := false
	for i, c := range s {
		switch name {
		case "isascii":
			if c >= 0x80 {
				return false
			}
			continue
		case "isdigit", "isnumeric", "isdecimal":
			if !unicode.IsDigit(c) && (name != "isnumeric" || !unicode.IsNumber(c)) {
				return false
			}
		case "isalpha":
			if !unicode.IsLetter(c) {
				return false
			}
		case "isalnum":
			if !unicode.IsLetter(c) && !unicode.IsNumber(c) {
				return false
			}
		case "isspace":
			if !isPySpace(c) {
				return false
			}
		case "isidentifier":
			if !isNameRune(c) || i == 0 && unicode.IsDigit(c) {
				return false
			}
		case "isupper":
			if unicode.IsLower(c) || unicode.IsTitle(c) {
				return false
			}
			cased = cased || unicode.IsUpper(c)
			continue
		case "islower":
			if unicode.IsUpper(c) || unicode.IsTitle(c) {
				return false
			}
			cased = cased || unicode.IsLower(c)
			continue
		case "istitle":
			switch {
			case unicode.IsUpper(c) || unicode.IsTitle(c):
				if prev {
					return false
				}
				prev, cased = true, true
			case unicode.IsLower(c):
				if !prev {
					return false
				}
			default:
				prev = false
			}
			continue
		}
		cased = true
	}
	return cased || name == "isascii"
}
