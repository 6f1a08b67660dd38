package edit

import (
	"strings"
	"unicode/utf8"
)

// maxAnchored bounds the lines of old for the matches between anchors, whose cost grows with the square.
const maxAnchored = 200

// anchored finds blocks whose first and last line are those of old, ends trimmed, with lines in between
// that resemble those of old: on average at least minSimilarity, missing and surplus lines counting as
// nothing; or, for the same number of lines, at least half of them equal. Old has at least three lines, so
// that there is something in between to judge by.
//
// Whatever is in between, a line that the edit changes must itself resemble the file's line: a block
// match may be wrong about what stays, never about what goes.
func anchored(f *file, old, repl []string) []candidate {
	n := len(old)
	if n < 3 || n > maxAnchored {
		return nil
	}
	first, last := strings.TrimSpace(old[0]), strings.TrimSpace(old[n-1])
	if first == "" || last == "" {
		return nil
	}
	slack := max(1, n/4)
	keep := commonLines(old, repl)
	kept := make([]bool, n)
	for _, i := range keep {
		if i >= 0 {
			kept[i] = true
		}
	}
	var out []candidate
	for i, l := range f.lines {
		if strings.TrimSpace(l) != first {
			continue
		}
		best, bestScore := candidate{}, 0.0
		for j := i + max(2, n-slack-1); j < min(len(f.lines), i+n+slack); j++ {
			if strings.TrimSpace(f.lines[j]) != last {
				continue
			}
			align, score := alignBlock(old, f.lines[i:j+1])
			if score <= bestScore || !changesKnown(old, f.lines[i:j+1], align, kept) {
				continue
			}
			best, bestScore = f.wholeLines(i, j+1, align), score
		}
		if bestScore > 0 {
			out = append(out, best)
		}
	}
	return out
}

// changesKnown tells whether every line of old that does not stay stands for a line of the file.
func changesKnown(old, block []string, align []int, kept []bool) bool {
	for i := range old {
		if kept[i] {
			continue
		}
		if align[i] < 0 || similarity(old[i], block[align[i]]) < minSimilarity {
			return false
		}
	}
	return true
}

// alignBlock pairs the lines of old with those of a block that has the same first and last line, and
// scores the pairs in between; 0 means not alike.
func alignBlock(old, block []string) (align []int, score float64) {
	n, m := len(old)-2, len(block)-2
	if n == m {
		sum, equal, filled := 0.0, 0, 0
		for k := 1; k <= n; k++ {
			s := similarity(old[k], block[k])
			sum += s
			if !blank(old[k]) {
				filled++
				if s == 1 {
					equal++
				}
			}
		}
		score = sum / float64(n)
		if score >= minSimilarity || filled > 0 && 2*equal >= filled {
			return identity(len(old)), score
		}
		return nil, 0
	}
	// best[i][j]: largest sum of similarities of old[1+i:] and block[1+j:].
	width := m + 1
	best := make([]float64, (n+1)*width)
	sim := make([]float64, n*m)
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			s := 0.0
			if a, b := old[1+i], block[1+j]; blank(a) == blank(b) && lengthsNear(a, b) {
				if s = similarity(a, b); s < minSimilarity {
					s = 0
				}
			}
			sim[i*m+j] = s
			best[i*width+j] = max(best[(i+1)*width+j], best[i*width+j+1], s+best[(i+1)*width+j+1])
		}
	}
	score = best[0] / float64(max(n, m))
	if score < minSimilarity {
		return nil, 0
	}
	align = make([]int, len(old))
	for i := range align {
		align[i] = -1
	}
	align[0], align[len(old)-1] = 0, len(block)-1
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case sim[i*m+j] > 0 && best[i*width+j] == sim[i*m+j]+best[(i+1)*width+j+1]:
			align[1+i] = 1 + j
			i, j = i+1, j+1
		case best[i*width+j] == best[(i+1)*width+j]:
			i++
		default:
			j++
		}
	}
	return align, score
}

// lengthsNear tells whether two lines can reach minSimilarity, going by their lengths.
func lengthsNear(a, b string) bool {
	x, y := utf8.RuneCountInString(strings.TrimSpace(a)), utf8.RuneCountInString(strings.TrimSpace(b))
	return float64(min(x, y)) >= minSimilarity*float64(max(x, y))
}

// validText tells whether the file is UTF-8.
func validText(f *file) bool { return utf8.Valid(f.raw) }
