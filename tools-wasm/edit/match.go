package edit

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// minSimilarity is what the lines between two anchors must reach on average, and each line that is to be
// changed by itself.
const minSimilarity = 0.65

// A match is what is to be replaced, in the order of the file.
type match struct {
	replacements []replacement
	how          string // what was ignored; empty: nothing
}

// A replacement puts text in the place of raw[start:end].
type replacement struct {
	start, end int
	text       string
}

// A candidate is a place of the file that old may stand for: a range of norm, and for each line of old
// the line of that range (see file.render).
type candidate struct {
	start, end int
	align      []int
}

var errLost = errors.New("old resembles the file only loosely there; read the lines again and copy old exactly")

// find looks for old in the file: exactly, then ever more tolerantly. The first way that finds anything
// decides. More than one place is an error unless all is set: never a reason to try a looser way.
func find(f *file, old, repl string, all bool) (match, error) {
	if m, err := exact(f, old, repl, all, 0); m != nil || err != nil {
		return deref(m), err
	}
	f.split()
	if o, r, line, ok := stripNumbers(old, repl); ok {
		if m, err := exact(f, o, r, all, line); m != nil || err != nil {
			return named(m, "line numbers"), err
		}
		if m, err := tolerant(f, o, r, all, line); m != nil || err != nil {
			return deref(m), err
		}
	}
	if blank(old) {
		return match{}, errors.New("old is only white space and was not found like that")
	}
	if m, err := tolerant(f, old, repl, all, 0); m != nil || err != nil {
		return deref(m), err
	}
	if r := unCRLF(repl); len(r) > 2 && !blank(r) {
		if at := bytes.Index(f.norm, []byte(r)); at >= 0 && !strings.Contains(unCRLF(old), r) {
			return match{}, errors.New("old was not found, but new already is in the file, at line " + strconv.Itoa(f.lineOf(at)) + ": the edit may have been made before")
		}
	}
	return match{}, errors.New("old was not found; it must be the file's text, with its white space and indentation" + nearest(f, old))
}

// exact finds old as it is, first in the bytes of the file, then with CRLF taken for a newline.
// prefer is the line, from 1, that decides between several places; 0: none.
func exact(f *file, old, repl string, all bool, prefer int) (*match, error) {
	if old == "" {
		return nil, nil
	}
	literal := bytes.Contains(f.raw, []byte(old)) && strings.Contains(repl, "\r\n")
	if literal {
		// The model writes line ends itself: take it at its word.
		starts := occurrences(f.raw, old)
		starts, err := choose(starts, all, len(old), func(n int) int { return 1 + bytes.Count(f.raw[:n], []byte{'\n'}) }, prefer)
		if err != nil {
			return nil, err
		}
		m := &match{}
		for _, s := range starts {
			m.replacements = append(m.replacements, replacement{s, s + len(old), repl})
		}
		return m, nil
	}
	old, repl = unCRLF(old), unCRLF(repl)
	starts := occurrences(f.norm, old)
	if len(starts) == 0 {
		return nil, nil
	}
	starts, err := choose(starts, all, len(old), f.lineOf, prefer)
	if err != nil {
		return nil, err
	}
	oldLines, replLines := strings.Split(old, "\n"), strings.Split(repl, "\n")
	var cands []candidate
	for _, s := range starts {
		cands = append(cands, candidate{s, s + len(old), identity(len(oldLines))})
	}
	return f.build(cands, oldLines, replLines, false, "")
}

func unCRLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// occurrences returns the offsets of all matches, overlapping ones too: "aa" is in "aaa" twice.
func occurrences(b []byte, s string) []int {
	var out []int
	for pos := 0; ; pos++ {
		i := bytes.Index(b[pos:], []byte(s))
		if i < 0 {
			return out
		}
		pos += i
		out = append(out, pos)
	}
}

// choose returns the places to replace: the only one, or with all every one that does not overlap an
// earlier one.
func choose(starts []int, all bool, length int, line func(int) int, prefer int) ([]int, error) {
	if all {
		out, end := starts[:0:0], 0
		for _, s := range starts {
			if s >= end {
				out, end = append(out, s), s+length
			}
		}
		return out, nil
	}
	if len(starts) == 1 {
		return starts, nil
	}
	if prefer > 0 {
		for _, s := range starts {
			if line(s) == prefer {
				return []int{s}, nil
			}
		}
	}
	return nil, ambiguous(starts, line)
}

func ambiguous(starts []int, line func(int) int) error {
	const most = 8
	var at []string
	for _, s := range starts[:min(len(starts), most)] {
		if n := strconv.Itoa(line(s)); len(at) == 0 || at[len(at)-1] != n {
			at = append(at, n)
		}
	}
	more := ""
	if len(starts) > most {
		more = ", ..."
	}
	return errors.New("old matches " + strconv.Itoa(len(starts)) + " places (lines " + strings.Join(at, ", ") + more +
		"); add surrounding lines to old, or set all to true")
}

// build turns candidates into replacements.
func (f *file) build(cands []candidate, old, repl []string, tolerant bool, how string) (*match, error) {
	m := &match{how: how}
	for _, c := range cands {
		text, ok := f.render(f.region(c.start, c.end), old, repl, c.align, tolerant)
		if !ok {
			return nil, errLost
		}
		m.replacements = append(m.replacements, replacement{f.rawOffset(c.start), f.rawOffset(c.end), text})
	}
	return m, nil
}

// tolerant tries the ways of matching that ignore something.
func tolerant(f *file, old, repl string, all bool, prefer int) (*match, error) {
	if blank(old) {
		return nil, nil // white space resembles everything
	}
	old, repl = unCRLF(old), unCRLF(repl)
	oldLines, replLines := textLines(old), textLines(repl)
	if repl == "" {
		replLines = nil // whole lines go, with their ends
	}
	byLine := func(same func(a, b string) bool) []candidate { return windows(f, oldLines, same) }

	for _, way := range []struct {
		how  string
		find func() []candidate
	}{
		{"white space at line ends and indentation", func() []candidate {
			return byLine(func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) })
		}},
		{"white space", func() []candidate {
			return byLine(func(a, b string) bool { return squeeze(a) == squeeze(b) })
		}},
	} {
		if cands := way.find(); len(cands) > 0 {
			return f.tolerate(cands, oldLines, replLines, all, prefer, way.how)
		}
	}
	if m, err := subLine(f, oldLines, replLines, all, prefer); m != nil || err != nil {
		return m, err
	}
	if m, err := unescaped(f, old, repl, all, prefer); m != nil || err != nil {
		return m, err
	}
	if m, err := trimmed(f, old, repl, all, prefer); m != nil || err != nil {
		return m, err
	}
	if cands := anchored(f, oldLines, replLines); len(cands) > 0 {
		return f.tolerate(cands, oldLines, replLines, all, prefer, "differences between its first and last line")
	}
	return nil, nil
}

// tolerate chooses between candidates that are whole lines and builds the match.
func (f *file) tolerate(cands []candidate, old, repl []string, all bool, prefer int, how string) (*match, error) {
	starts := make([]int, len(cands))
	for i, c := range cands {
		starts[i] = c.start
	}
	if !all && len(cands) > 1 {
		chosen, err := choose(starts, false, 0, f.lineOf, prefer)
		if err != nil {
			return nil, err
		}
		cands = []candidate{cands[slices.Index(starts, chosen[0])]}
	}
	var apart []candidate
	end := -1
	for _, c := range cands {
		if err := proportionate(f, c, old); err != nil {
			return nil, err
		}
		if c.start > end || end < 0 {
			apart, end = append(apart, c), c.end
		}
	}
	if repl == nil {
		m := &match{how: how}
		for _, c := range apart {
			stop := min(c.end+1, len(f.norm)) // with the line end, where there is one
			m.replacements = append(m.replacements, replacement{f.rawOffset(c.start), f.rawOffset(stop), ""})
		}
		return m, nil
	}
	return f.build(apart, old, repl, true, how)
}

// proportionate refuses a candidate that covers much more text than old. It ends the search: a looser way
// would not do better.
func proportionate(f *file, c candidate, old []string) error {
	found := strings.Split(string(f.norm[c.start:c.end]), "\n")
	text := strings.Join(old, "\n")
	big := len(found) >= max(len(old)+3, len(old)*2)
	if len(old) > 1 && len(strings.TrimSpace(string(f.norm[c.start:c.end]))) > max(len(text)+500, len(text)*4) {
		big = true
	}
	if big {
		return errors.New("the text that resembles old (line " + strconv.Itoa(f.lineOf(c.start)) +
			") is much larger than old; read the lines again and copy old exactly")
	}
	return nil
}

func identity(n int) []int {
	a := make([]int, n)
	for i := range a {
		a[i] = i
	}
	return a
}

// windows returns the runs of lines in which every line is the same as that of old. At least one line of
// old is not blank.
func windows(f *file, old []string, same func(file, old string) bool) []candidate {
	var out []candidate
	// The longest line decides quickly.
	key := 0
	for i, l := range old {
		if len(strings.TrimSpace(l)) > len(strings.TrimSpace(old[key])) {
			key = i
		}
	}
	if blank(old[key]) {
		return nil
	}
	for i := 0; i+len(old) <= len(f.lines); i++ {
		if !same(f.lines[i+key], old[key]) {
			continue
		}
		ok := true
		for k := range old {
			if !same(f.lines[i+k], old[k]) {
				ok = false
				break
			}
		}
		if ok {
			out = append(out, f.wholeLines(i, i+len(old), identity(len(old))))
		}
	}
	return out
}

// wholeLines is the candidate of lines[from:to], without the last line end.
func (f *file) wholeLines(from, to int, align []int) candidate {
	return candidate{f.start[from], f.start[to-1] + len(f.lines[to-1]), align}
}

// subLine finds a text of one line within a line, taking any run of white space for any other.
func subLine(f *file, old, repl []string, all bool, prefer int) (*match, error) {
	if len(old) != 1 || len(strings.Fields(old[0])) < 2 {
		return nil, nil
	}
	words := strings.Fields(old[0])
	var cands []candidate
	for i, l := range f.lines {
		for pos := 0; pos < len(l); {
			at := strings.Index(l[pos:], words[0])
			if at < 0 {
				break
			}
			at += pos
			if end := wordsAt(l, at, words); end > 0 {
				cands = append(cands, candidate{f.start[i] + at, f.start[i] + end, []int{0}})
			}
			pos = at + 1
		}
	}
	if len(cands) == 0 {
		return nil, nil
	}
	text := make([]string, len(repl))
	copy(text, repl)
	if len(text) == 0 {
		text = []string{""}
	}
	// What old has at its ends beyond the words is not replaced, so new loses the same.
	lead := indent(old[0])
	trail := old[0][len(strings.TrimRightFunc(old[0], unicode.IsSpace)):]
	text[0] = strings.TrimPrefix(text[0], lead)
	text[len(text)-1] = strings.TrimSuffix(text[len(text)-1], trail)
	starts := make([]int, len(cands))
	for i, c := range cands {
		starts[i] = c.start
	}
	chosen, err := choose(starts, all, 1, f.lineOf, prefer)
	if err != nil {
		return nil, err
	}
	var use []candidate
	end := -1
	for i, c := range cands {
		if slices.Contains(chosen, starts[i]) && c.start >= end {
			use, end = append(use, c), c.end
		}
	}
	return f.build(use, []string{old[0] + "\x00"}, text, false, "white space") // no line is kept
}

// wordsAt returns where the words end in l from offset at on, or 0.
func wordsAt(l string, at int, words []string) int {
	for k, w := range words {
		if k > 0 {
			n := len(indent(l[at:]))
			if n == 0 {
				return 0
			}
			at += n
		}
		if !strings.HasPrefix(l[at:], w) {
			return 0
		}
		at += len(w)
	}
	return at
}

// unescaped finds old with one layer of escapes undone. New was written by the same hand, so its escapes
// are undone too.
func unescaped(f *file, old, repl string, all bool, prefer int) (*match, error) {
	const how = "escapes"
	bytes := !validText(f)
	o := unescape(old, bytes)
	if o == old || blank(o) {
		return nil, nil
	}
	r := unescape(repl, bytes)
	if m, err := exact(f, o, r, all, prefer); m != nil || err != nil {
		if m != nil {
			m.how = how
		}
		return m, err
	}
	lines := textLines(unCRLF(o))
	cands := windows(f, lines, func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) })
	if len(cands) == 0 {
		return nil, nil
	}
	return f.tolerate(cands, lines, textLines(unCRLF(r)), all, prefer, how)
}

// trimmed finds old without the white space at its ends. Where some was taken off, the file must have
// white space or an end, so that no word is cut.
func trimmed(f *file, old, repl string, all bool, prefer int) (*match, error) {
	core := strings.TrimSpace(old)
	if core == old {
		return nil, nil
	}
	lead, trail := old[:strings.Index(old, core)], old[strings.Index(old, core)+len(core):]
	var starts []int
	for _, s := range occurrences(f.norm, core) {
		if (lead == "" || spaceAt(f.norm, s, true)) && (trail == "" || spaceAt(f.norm, s+len(core), false)) {
			starts = append(starts, s)
		}
	}
	if len(starts) == 0 {
		return nil, nil
	}
	starts, err := choose(starts, all, len(core), f.lineOf, prefer)
	if err != nil {
		return nil, err
	}
	text := repl
	if t, ok := strings.CutPrefix(text, lead); ok {
		text = t
	} else {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	if t, ok := strings.CutSuffix(text, trail); ok {
		text = t
	} else {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	oldLines := strings.Split(core, "\n")
	var cands []candidate
	for _, s := range starts {
		cands = append(cands, candidate{s, s + len(core), identity(len(oldLines))})
	}
	return f.build(cands, oldLines, strings.Split(text, "\n"), false, "white space around it")
}

func deref(m *match) match {
	if m == nil {
		return match{}
	}
	return *m
}

func named(m *match, how string) match {
	if m == nil {
		return match{}
	}
	m.how = how
	return *m
}
