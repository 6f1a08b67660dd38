package edit

import (
	"strconv"
	"strings"
)

// stripNumbers takes off the line numbers that read puts before each line, when every line of old has
// one and they count up. Lines of new lose theirs too. line is the first number.
func stripNumbers(old, repl string) (o, r string, line int, ok bool) {
	lines := textLines(old)
	for i, l := range lines {
		n, rest, has := cutNumber(l)
		if !has || i > 0 && n != line+i {
			return "", "", 0, false
		}
		if i == 0 {
			line = n
		}
		lines[i] = rest
	}
	o = strings.Join(lines, "\n")
	if strings.HasSuffix(old, "\n") {
		o += "\n"
	}
	rl := strings.Split(repl, "\n")
	for i, l := range rl {
		if _, rest, has := cutNumber(l); has {
			rl[i] = rest
		}
	}
	r = strings.Join(rl, "\n")
	return o, r, line, o != "" && o != r
}

// cutNumber splits "12|text" as read writes it, and the forms that other tools have taught models:
// a tab, a colon or an arrow after the number, spaces before it.
func cutNumber(l string) (n int, rest string, ok bool) {
	s := strings.TrimLeft(l, " ")
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits > 9 {
		return 0, "", false
	}
	n, _ = strconv.Atoi(s[:digits])
	for _, sep := range []string{"|", "\t", ":", "→"} {
		if rest, ok := strings.CutPrefix(s[digits:], sep); ok {
			return n, rest, true
		}
	}
	return 0, "", false
}
