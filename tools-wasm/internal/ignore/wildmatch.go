package ignore

import "strings"

// Match tells whether the whole name matches the pattern as git's wildmatch does with WM_PATHNAME: "*"
// and "?" do not match a slash, "**" does where it is a whole path element, "[...]" is a class with
// ranges, "!" or "^" and names such as [:alpha:], a backslash takes the next character literally.
// A malformed pattern matches nothing. The time is bounded by the product of the lengths, whatever the
// pattern.
func Match(pattern, name string) bool {
	m := matcher{p: pattern, t: name}
	var small [2048]bool
	if strings.Count(pattern, "*") > 1 {
		if n := (len(pattern) + 1) * (len(name) + 1); n <= len(small) {
			m.failed = small[:n]
		} else {
			m.failed = make([]bool, n)
		}
	}
	return m.at(0, 0)
}

type matcher struct {
	p, t   string
	failed []bool // states (p, t) known not to match; nil when the pattern cannot branch twice
}

// at tells whether t[j:] matches p[i:].
func (m *matcher) at(i, j int) bool {
	if m.failed == nil {
		return m.match(i, j)
	}
	state := i*(len(m.t)+1) + j
	if m.failed[state] {
		return false
	}
	ok := m.match(i, j)
	m.failed[state] = !ok
	return ok
}

func (m *matcher) match(i, j int) bool {
	p, t := m.p, m.t
	for ; i < len(p); i, j = i+1, j+1 {
		if p[i] == '*' {
			return m.star(i, j)
		}
		if j >= len(t) {
			return false
		}
		switch p[i] {
		case '?':
			if t[j] == '/' {
				return false
			}
		case '[':
			end, ok := class(p, i, t[j])
			if !ok || t[j] == '/' {
				return false
			}
			i = end
		case '\\':
			if i++; i >= len(p) || p[i] != t[j] {
				return false
			}
		default:
			if p[i] != t[j] {
				return false
			}
		}
	}
	return j == len(t)
}

// star matches from a run of stars on.
func (m *matcher) star(i, j int) bool {
	p, t := m.p, m.t
	start := i
	for i < len(p) && p[i] == '*' {
		i++
	}
	rest := p[i:]
	whole := i-start > 1 && (start == 0 || p[start-1] == '/') &&
		(rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
	if whole && rest != "" && rest[0] == '/' && m.at(i+1, j) {
		return true // "**/" may match no directory at all
	}
	if rest == "" {
		return whole || !strings.Contains(t[j:], "/")
	}
	for from := j; ; j++ {
		if m.at(i, j) {
			return true
		}
		if j >= len(t) || t[j] == '/' && !whole {
			// From any place that was tried the stars fail as well: they would try a part of the same.
			for k := from; k <= j && m.failed != nil; k++ {
				m.failed[start*(len(t)+1)+k] = true
			}
			return false
		}
	}
}

// class tells whether c is in the class that starts at p[i], and where the class ends (its "]").
func class(p string, i int, c byte) (end int, ok bool) {
	i++
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	matched := false
	var prev byte // start of a possible range; 0: none
	for first := true; ; first = false {
		if i >= len(p) {
			return 0, false
		}
		ch := p[i]
		switch {
		case ch == ']' && !first:
			return i, matched != negated
		case ch == '\\':
			if i++; i >= len(p) {
				return 0, false
			}
			prev = p[i]
			matched = matched || c == prev
		case ch == '-' && prev != 0 && i+1 < len(p) && p[i+1] != ']':
			i++
			hi := p[i]
			if hi == '\\' {
				if i++; i >= len(p) {
					return 0, false
				}
				hi = p[i]
			}
			matched = matched || prev <= c && c <= hi
			prev = 0
		case ch == '[' && i+1 < len(p) && p[i+1] == ':':
			close := strings.IndexByte(p[i+2:], ']')
			if close < 0 {
				return 0, false
			}
			name := p[i+2 : i+2+close]
			if !strings.HasSuffix(name, ":") { // not a named class after all: a plain "["
				matched, prev = matched || c == '[', '['
				break
			}
			in, known := named(strings.TrimSuffix(name, ":"), c)
			if !known {
				return 0, false
			}
			matched, prev = matched || in, 0
			i += 2 + close
		default:
			matched, prev = matched || c == ch, ch
		}
		i++
	}
}

// named tells whether c is in a POSIX class, in the C locale.
func named(name string, c byte) (in, known bool) {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < 0x20 || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return c > 0x20 && c < 0x7f, true
	case "lower":
		return lower, true
	case "print":
		return c >= 0x20 && c < 0x7f, true
	case "punct":
		return c > 0x20 && c < 0x7f && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F', true
	}
	return false, false
}
