package edit

import (
	"bytes"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"atoll/tools-wasm/internal/text"
)

// A file is the content with the two views that matching needs: norm, in which every CRLF is a newline,
// and its lines. A lone CR is an ordinary character.
type file struct {
	raw  []byte
	norm []byte
	// crlf are the offsets in norm of the newlines that are CRLF in raw, ascending.
	crlf  []int
	lines []string // of norm, without newlines
	start []int    // offset in norm of each line; one more for the end of the last line
}

func newFile(raw []byte) *file {
	f := &file{raw: raw, norm: raw}
	if bytes.Contains(raw, []byte("\r\n")) {
		f.norm = make([]byte, 0, len(raw))
		for i, c := range raw {
			if c == '\r' && i+1 < len(raw) && raw[i+1] == '\n' {
				f.crlf = append(f.crlf, len(f.norm))
				continue
			}
			f.norm = append(f.norm, c)
		}
	}
	return f
}

// split fills lines and start. A final newline does not start another line.
func (f *file) split() {
	if f.start != nil {
		return
	}
	pos := 0
	for _, l := range splitLines(f.norm) {
		f.start = append(f.start, pos)
		f.lines = append(f.lines, string(bytes.TrimSuffix(l, []byte{'\n'})))
		pos += len(l)
	}
	f.start = append(f.start, pos)
}

// rawOffset maps an offset in norm to raw. The offset of a newline maps to that of its CR.
func (f *file) rawOffset(n int) int { return n + sort.SearchInts(f.crlf, n) }

// lineOf returns the number, from 1, of the line that holds the offset of norm.
func (f *file) lineOf(n int) int { return 1 + bytes.Count(f.norm[:n], []byte{'\n'}) }

// ending returns the line end at or after an offset of norm, else the one before it, else "\n".
func (f *file) ending(n int) string {
	i := bytes.IndexByte(f.norm[n:], '\n')
	if i >= 0 {
		i += n
	} else if i = bytes.LastIndexByte(f.norm[:n], '\n'); i < 0 {
		return "\n"
	}
	return f.endingAt(i)
}

// endingAt returns the line end whose newline is at the offset of norm.
func (f *file) endingAt(n int) string {
	if i := sort.SearchInts(f.crlf, n); i < len(f.crlf) && f.crlf[i] == n {
		return "\r\n"
	}
	return "\n"
}

// splitLines cuts b after each newline; there is no empty last line.
func splitLines(b []byte) [][]byte {
	lines := bytes.SplitAfter(b, []byte{'\n'})
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	return lines
}

// textLines cuts a multi-line argument into lines without ends. A newline at the end ends the last line,
// it does not start an empty one: counting that one is how a two-line text passes for a block of three.
func textLines(s string) []string {
	s = strings.TrimSuffix(s, "\n")
	return strings.Split(s, "\n")
}

// indent returns the white space at the start of a line. It is cut between characters, whatever their
// width.
func indent(s string) string {
	return s[:len(s)-len(strings.TrimLeftFunc(s, unicode.IsSpace))]
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// squeeze returns a line with runs of white space as one space, none at the ends, and with the
// typographic characters that models turn into ASCII replaced.
func squeeze(s string) string {
	var b strings.Builder
	space := false
	for _, r := range strings.TrimSpace(s) {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		switch r {
		case '‘', '’':
			r = '\''
		case '“', '”':
			r = '"'
		case '–', '—', '‐', '‑':
			r = '-'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// similarity of two lines, ends trimmed: 1 less the edit distance by the length of the longer one, both
// in characters.
func similarity(a, b string) float64 {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if a == b {
		return 1
	}
	const most = 400 // characters compared of a line; the cost is quadratic
	x, y := clipRunes([]rune(a), most), clipRunes([]rune(b), most)
	n := max(len(x), len(y))
	if n == 0 {
		return 1
	}
	return 1 - float64(text.Distance(x, y))/float64(n)
}

func clipRunes(r []rune, n int) []rune { return r[:min(len(r), n)] }

// unescape undoes one layer of escapes, as models add one too many: \n \t \r \' \" \` \\ \$ and a
// backslash at the end of a line. With bytes set also \xNN, the form in which read shows bytes that are
// not UTF-8.
func unescape(s string, bytes bool) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '\'', '"', '`', '\\', '$', '\n':
			b.WriteByte(c)
		case 'x':
			if hi, lo := unhex(s, i+1), unhex(s, i+2); bytes && hi >= 0 && lo >= 0 && hi >= 8 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
			fallthrough
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unhex(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch c := s[i]; {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// spaceAt tells whether there is white space, or no character, on the given side of an offset.
func spaceAt(b []byte, n int, before bool) bool {
	if before {
		if n == 0 {
			return true
		}
		r, _ := utf8.DecodeLastRune(b[:n])
		return unicode.IsSpace(r)
	}
	if n == len(b) {
		return true
	}
	r, _ := utf8.DecodeRune(b[n:])
	return unicode.IsSpace(r)
}
