// Package spelling finds the name that a misspelt word may stand for.
package spelling

// Closest returns the name that is nearest to word: at most two insertions, deletions or replacements of bytes away, and
// at most half as many as the word has bytes. Of equally near names it is the first in the order of strings. It is "" where none is near.
func Closest(word string, names []string) string {
	best, at := "", 3
	for _, name := range names {
		if max(len(word)-len(name), len(name)-len(word)) > 2 {
			continue
		}
		if d := distance(word, name); 2*d <= len(word) && (d < at || d == at && name < best) {
			best, at = name, d
		}
	}
	return best
}

// distance is the Levenshtein distance of a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
