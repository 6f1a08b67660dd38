package grep

import (
	"bytes"
	"math/bits"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"atoll/tools-wasm/internal/text"
)

// maxLiterals bounds how many texts are searched for side by side.
const maxLiterals = 8

// literals are texts of which every match contains at least one.
type literals struct {
	texts []string // nil: not known
	fold  bool     // case does not count; texts are lower case then
	whole bool     // containing one of texts is also enough for a match
}

// required returns the texts that a match of the expression cannot do without.
func required(re *syntax.Regexp) literals {
	switch re.Op {
	case syntax.OpLiteral:
		fold := re.Flags&syntax.FoldCase != 0
		word := string(re.Rune)
		if !utf8.ValidString(word) || strings.ContainsRune(word, utf8.RuneError) {
			return literals{}
		}
		if !fold {
			return literals{texts: []string{word}, whole: true}
		}
		return foldable(word)
	case syntax.OpCapture:
		return required(re.Sub[0])
	case syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			l := required(re.Sub[0])
			l.whole = false
			return l
		}
	case syntax.OpConcat:
		var best literals
		for _, sub := range re.Sub {
			if l := required(sub); l.better(best) {
				best = l
			}
		}
		best.whole = false
		return best
	case syntax.OpAlternate:
		all := literals{whole: true}
		for i, sub := range re.Sub {
			l := required(sub)
			if l.texts == nil || i > 0 && l.fold != all.fold {
				return literals{}
			}
			all.texts = append(all.texts, l.texts...)
			all.fold, all.whole = l.fold, all.whole && l.whole
		}
		if len(all.texts) > maxLiterals {
			return literals{}
		}
		return all
	}
	return literals{}
}

// foldable returns the longest part of a text that folds within ASCII. Some other letters fold to k and
// s (the Kelvin sign, the long s), so these two do not.
func foldable(word string) literals {
	low := strings.ToLower(word)
	if len(low) != len(word) {
		return literals{}
	}
	best := ""
	for _, part := range strings.FieldsFunc(low, func(r rune) bool { return r == 'k' || r == 's' || r >= utf8.RuneSelf }) {
		if len(part) > len(best) {
			best = part
		}
	}
	if best == "" {
		return literals{}
	}
	return literals{texts: []string{best}, fold: true, whole: best == low}
}

// better tells whether searching for l leaves fewer lines than searching for o.
func (l literals) better(o literals) bool {
	if l.texts == nil || o.texts == nil {
		return l.texts != nil
	}
	if a, b := shortest(l.texts), shortest(o.texts); a != b {
		return a > b
	}
	return len(l.texts) < len(o.texts)
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return n
}

// A finder searches for several texts at once.
type finder struct {
	needles []needle
	exact   bool // what it finds are the texts themselves, not parts of them
	fold    bool
}

// A needle is searched for by the byte of it that is rarest in source text.
type needle struct {
	text   []byte // lower case when folding
	rare   int    // index of the rarest byte
	c1, c2 byte   // its two cases; the same without folding
}

// newFinder returns nil when the texts cannot be searched for this way.
func newFinder(texts []string, fold bool) *finder {
	f := &finder{exact: true, fold: fold}
	for _, t := range texts {
		if fold {
			l := foldable(t)
			if l.texts == nil {
				return nil
			}
			f.exact = f.exact && l.whole
			t = l.texts[0]
		}
		n := needle{text: []byte(t)}
		for i := range n.text {
			if rank(n.text[i]) < rank(n.text[n.rare]) {
				n.rare = i
			}
		}
		n.c1 = n.text[n.rare]
		n.c2 = n.c1
		if fold && n.c1 >= 'a' && n.c1 <= 'z' {
			n.c2 = n.c1 - 'a' + 'A'
		}
		f.needles = append(f.needles, n)
	}
	return f
}

// rank orders bytes by how often they occur in source text, the rare ones first.
func rank(c byte) int {
	if i := strings.IndexByte("\t_.,()=\"-0\n/:;1{}ybgwvkpmfudchl srniaote", c); i >= 0 {
		return 1 + i
	}
	if c >= 'A' && c <= 'Z' {
		return 1
	}
	return 0
}

// index returns the first place where one of the texts is in b, and its length, or -1.
func (f *finder) index(b []byte) (at, n int) {
	at = -1
	for i := range f.needles {
		if k := f.needles[i].index(b, f.fold); k >= 0 {
			at, n = k, len(f.needles[i].text)
			b = b[:min(len(b), k+n)] // others count only where they are earlier
		}
	}
	return at, n
}

func (n *needle) index(b []byte, fold bool) int {
	for pos := n.rare; ; pos++ {
		if pos >= len(b) {
			return -1
		}
		var i int
		if n.c1 == n.c2 {
			i = indexByte(b[pos:], n.c1)
		} else {
			i = indexEither(b[pos:], n.c1, n.c2)
		}
		if i < 0 {
			return -1
		}
		pos += i
		start := pos - n.rare
		if start+len(n.text) > len(b) {
			return -1
		}
		if fold && equalFold(b[start:start+len(n.text)], n.text) || !fold && bytes.Equal(b[start:start+len(n.text)], n.text) {
			return start
		}
	}
}

// equalFold compares with a lower case text of ASCII.
func equalFold(b, low []byte) bool {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != low[i] {
			return false
		}
	}
	return true
}

const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// zeros has bit 7 set in the lowest byte of x that is zero, and possibly in higher ones.
func zeros(x uint64) uint64 { return (x - ones) & ^x & high }

// indexByte is bytes.IndexByte 32 bytes at a time, which is several times as fast inside WebAssembly.
func indexByte(b []byte, c byte) int {
	p := uint64(c) * ones
	rest := b
	for len(rest) >= 32 {
		y := zeros(text.Load64(rest)^p) |
			zeros(text.Load64(rest[8:])^p) |
			zeros(text.Load64(rest[16:])^p) |
			zeros(text.Load64(rest[24:])^p)
		if y != 0 {
			break
		}
		rest = rest[32:]
	}
	for len(rest) >= 8 {
		if y := zeros(text.Load64(rest) ^ p); y != 0 {
			return len(b) - len(rest) + bits.TrailingZeros64(y)/8
		}
		rest = rest[8:]
	}
	for i, x := range rest {
		if x == c {
			return len(b) - len(rest) + i
		}
	}
	return -1
}

// indexEither returns the first place of either byte.
func indexEither(b []byte, c1, c2 byte) int {
	p1, p2 := uint64(c1)*ones, uint64(c2)*ones
	rest := b
	for len(rest) >= 16 {
		v, w := text.Load64(rest), text.Load64(rest[8:])
		if zeros(v^p1)|zeros(v^p2)|zeros(w^p1)|zeros(w^p2) != 0 {
			break
		}
		rest = rest[16:]
	}
	for len(rest) >= 8 {
		v := text.Load64(rest)
		if y := zeros(v^p1) | zeros(v^p2); y != 0 {
			return len(b) - len(rest) + bits.TrailingZeros64(y)/8
		}
		rest = rest[8:]
	}
	for i, x := range rest {
		if x == c1 || x == c2 {
			return len(b) - len(rest) + i
		}
	}
	return -1
}
