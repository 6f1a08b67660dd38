package edit

import (
	"strconv"
	"strings"

	"atoll/tools-wasm/internal/text"
)

// nearest returns a hint for the message that old was not found: the lines of the file that resemble it
// most, with their numbers, so that the next attempt can copy them. Empty when nothing resembles it.
func nearest(f *file, old string) string {
	const (
		most     = 8   // lines shown
		width    = 160 // bytes shown of a line
		minScore = 0.4
	)
	lines := textLines(unCRLF(old))
	if len(lines) > 50 {
		lines = lines[:50]
	}
	// Score every line of the file against the lines of old by shared pairs of bytes; each good pair votes
	// for the window that would put the two lines side by side.
	votes := make(map[int]float64)
	best, bestScore := -1, 0.0
	grams := make([]bigrams, len(lines))
	for k, l := range lines {
		grams[k] = newBigrams(l)
	}
	budget := 4_000_000 / len(lines) // bytes of the file looked at
	for i, l := range f.lines {
		if budget -= len(l) + 1; budget < 0 {
			break
		}
		if blank(l) {
			continue
		}
		g := newBigrams(l)
		for k := range lines {
			if s := grams[k].dice(g); s >= minScore {
				at := max(0, i-k)
				votes[at] += s
				if votes[at] > bestScore || votes[at] == bestScore && at < best {
					best, bestScore = at, votes[at]
				}
			}
		}
	}
	if best < 0 {
		return ""
	}
	end := min(len(f.lines), best+min(len(lines), most))
	var b strings.Builder
	b.WriteString(". Nearest text, lines " + strconv.Itoa(best+1) + " to " + strconv.Itoa(end) + ":")
	for i := best; i < end; i++ {
		line, _ := text.AppendVisible(nil, text.Clip([]byte(f.lines[i]), width))
		b.WriteString("\n" + strconv.Itoa(i+1) + "|" + string(line))
	}
	return b.String()
}

// bigrams are the pairs of neighbouring bytes of a line without its white space, as a set of hashes.
type bigrams struct {
	set [8]uint64
	n   int
}

func newBigrams(s string) bigrams {
	var g bigrams
	prev := byte(0)
	for i := 0; i < min(len(s), 400); i++ {
		c := s[i]
		if c == ' ' || c == '\t' {
			continue
		}
		if prev != 0 {
			h := (uint32(prev)*0x9e3779b1 ^ uint32(c)*0x85ebca6b) >> 7 & 511
			if g.set[h>>6]&(1<<(h&63)) == 0 {
				g.set[h>>6] |= 1 << (h & 63)
				g.n++
			}
		}
		prev = c
	}
	return g
}

// dice is twice the shared pairs by the sum of the pairs.
func (g bigrams) dice(o bigrams) float64 {
	if g.n == 0 || o.n == 0 {
		return 0
	}
	shared := 0
	for i := range g.set {
		for x := g.set[i] & o.set[i]; x != 0; x &= x - 1 {
			shared++
		}
	}
	return 2 * float64(shared) / float64(g.n+o.n)
}
