package chat

import "slices"

// callScan follows JSON while it streams in, just far enough to know what is
// inside a string and when a value is whole, and to see the name and arguments
// of a call before it ends. Reading the values is left to looseAll.
type callScan struct {
	pos   int    // bytes looked at
	open  []byte // closers of the brackets that are open
	quote byte   // of the string we are in, 0 outside
	esc   bool
	note  byte // in a comment: '/' up to the line end, '*' up to */
	sig   byte // last character that is neither blank nor comment
	seen  bool // a bracket has been opened

	from     int  // start of the string we are in
	objects  int  // call objects closed so far
	current  int  // the call object we are in or were in last
	mute     bool // names and arguments do not matter
	level    int  // depth of the call object's own keys
	key      string
	name     string
	named    bool
	argsFrom int // offset of the arguments' opening brace, -1
	argsTo   int // offset behind its closing brace, -1 while open
}

func newCallScan() *callScan { return &callScan{argsFrom: -1, argsTo: -1} }

// scanStop is why scanning paused.
type scanStop uint8

const (
	scanMore   scanStop = iota // at the end of the text
	scanMark                   // at '<', '`' or '[' outside of strings and values: maybe a tag or fence
	scanText                   // at text behind a whole value
	scanName                   // the name of a call has just become known
	scanObject                 // a call object has just closed
)

// step looks at more of buf and stops behind or at what the caller must see.
func (s *callScan) step(buf []byte, final bool) scanStop {
	for s.pos < len(buf) {
		c := buf[s.pos]
		switch {
		case s.quote != 0:
			s.pos++
			switch {
			case s.esc:
				s.esc = false
			case c == '\\':
				s.esc = true
			case c == s.quote:
				s.quote = 0
				if s.mute {
					s.sig = '"'
				} else if s.closeString(string(buf[s.from:s.pos])) {
					return scanName
				}
			}
		case s.note == '/':
			if c == '\n' {
				s.note = 0
			}
			s.pos++
		case s.note == '*':
			if c == '*' {
				if s.pos+1 == len(buf) && !final {
					return scanMore
				}
				if s.pos+1 < len(buf) && buf[s.pos+1] == '/' {
					s.note = 0
					s.pos++
				}
			}
			s.pos++
		case isBlank(c):
			s.pos++
		case c == '#' && s.seen:
			s.note = '/'
			s.pos++
		case c == '/' && s.seen:
			if s.pos+1 == len(buf) && !final {
				return scanMore
			}
			if s.pos+1 < len(buf) && (buf[s.pos+1] == '/' || buf[s.pos+1] == '*') {
				s.note = buf[s.pos+1]
				s.pos += 2
				continue
			}
			if len(s.open) == 0 {
				return scanText
			}
			s.sig = c
			s.pos++
		case c == '<' || c == '`':
			return scanMark
		case c == '"', c == '\'' && (s.sig == '{' || s.sig == '[' || s.sig == ',' || s.sig == ':'):
			if len(s.open) == 0 {
				return scanText
			}
			s.quote, s.from = c, s.pos
			s.pos++
		case c == '{' || c == '[':
			s.bracket(c)
			s.pos++
		case c == '}' || c == ']':
			s.pos++
			s.sig = c
			if s.unbracket() {
				return scanObject
			}
		case len(s.open) == 0 && c != ',' && c != ';':
			return scanText
		default:
			s.sig = c
			s.pos++
		}
	}
	return scanMore
}

func (s *callScan) bracket(c byte) {
	closer := byte('}')
	if c == '[' {
		closer = ']'
	}
	switch {
	case c == '{' && (len(s.open) == 0 || len(s.open) == 1 && s.open[0] == ']'):
		s.level = len(s.open) + 1
		s.current = s.objects
		s.key, s.name, s.named, s.argsFrom, s.argsTo = "", "", false, -1, -1
	case c == '{' && len(s.open) == s.level && s.sig == ':':
		if slices.Contains(wrapKeys, s.key) {
			s.level++
		} else if slices.Contains(argsKeys, s.key) && s.argsFrom < 0 {
			s.argsFrom = s.pos
		}
	case c == '{' && len(s.open) == s.level && s.sig == '{':
		s.level++ // doubled braces
	}
	s.seen = true
	s.sig = c
	s.open = append(s.open, closer)
}

// unbracket closes one bracket and says whether that closed a call object.
func (s *callScan) unbracket() bool {
	if len(s.open) == 0 {
		return false // one too many
	}
	was := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	if s.argsFrom >= 0 && s.argsTo < 0 && len(s.open) == s.level {
		s.argsTo = s.pos
	}
	if was == '}' && (len(s.open) == 0 || len(s.open) == 1 && s.open[0] == ']') {
		s.objects++
		return true
	}
	return false
}

// closeString takes note of a string with its quotes and says whether it was the
// name of a call.
func (s *callScan) closeString(quoted string) bool {
	prev := s.sig
	s.sig = '"'
	if len(s.open) != s.level {
		return false
	}
	l := &loose{s: quoted}
	v, _ := l.str(quoted[0])
	switch prev {
	case '{', ',':
		s.key = v
	case ':':
		if !s.named && slices.Contains(nameKeys, s.key) {
			s.name, s.named = v, true
			return true
		}
	}
	return false
}

// whole says that at least one value began and none is open.
func (s *callScan) whole() bool { return s.seen && len(s.open) == 0 && s.quote == 0 }
