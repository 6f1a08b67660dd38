package edit

import (
	"strings"
)

// A region is the part of the file that old stands for, cut into lines.
type region struct {
	texts []string // lines without ends
	ends  []string // line end of each but the last, whose end is outside the region
	start int      // offset in norm
}

// region cuts norm[start:end].
func (f *file) region(start, end int) region {
	r := region{texts: strings.Split(string(f.norm[start:end]), "\n"), start: start}
	pos := start
	for _, t := range r.texts[:len(r.texts)-1] {
		pos += len(t)
		r.ends = append(r.ends, f.endingAt(pos))
		pos++
	}
	return r
}

// render returns what takes the place of the region when old becomes repl. align gives for each line of
// old the line of the region that it stands for, ascending, or -1.
//
// A line of repl that is also in old keeps the file's own text and line end; lines of the file that old
// does not know stay where they are between such lines. The other lines of repl are new: they get the
// indentation that the file has where old has its own (when tolerant), and the line end of the line that
// they replace, or of the one before. ok is false when a line of the file that old does not know would be
// lost or end up in the middle of a change.
func (f *file) render(r region, old, repl []string, align []int, tolerant bool) (text string, ok bool) {
	keep := commonLines(old, repl)
	in := indents{}
	if tolerant {
		in = newIndents(old, r.texts, align)
	}
	var b strings.Builder
	near := f.ending(r.start)    // line end of the surroundings
	last, written := near, false // line end of the line written last; it goes before the next one
	emit := func(text, end string) {
		if written {
			b.WriteString(last)
		}
		b.WriteString(text)
		last, written = end, true
	}
	// hunk handles what lies between two kept lines, as half-open ranges.
	hunk := func(old0, old1, new0, new1, line0, line1 int) bool {
		var gone, from []int // lines of the file that go, and the lines of old that stand for them
		for k := old0; k < old1; k++ {
			if align[k] >= 0 {
				gone, from = append(gone, align[k]), append(from, k)
			}
		}
		changed := len(gone) > 0 || new1 > new0
		next := 0
		for l := line0; l < line1; l++ {
			if next < len(gone) && gone[next] == l {
				next++
				continue
			}
			if changed {
				return false
			}
			emit(r.texts[l], r.end1(l, near))
		}
		for j := new0; j < new1; j++ {
			line, end := repl[j], near
			if len(gone) > 0 {
				k := min(j-new0, len(gone)-1)
				end = r.end1(gone[k], near)
				if own := indent(line); tolerant && !blank(line) && own == indent(old[from[k]]) {
					emit(indent(r.texts[gone[k]])+line[len(own):], end)
					continue
				}
			}
			emit(in.apply(line), end)
		}
		return true
	}
	old0, new0, line0 := 0, 0, 0
	for j, i := range keep {
		if i < 0 {
			continue
		}
		if align[i] < 0 {
			// Meant to stay, but not in the file: there is nothing to keep.
			if !hunk(old0, i, new0, j, line0, line0) {
				return "", false
			}
			old0, new0 = i+1, j+1
			continue
		}
		if !hunk(old0, i, new0, j, line0, align[i]) {
			return "", false
		}
		near = r.end1(align[i], near)
		emit(r.texts[align[i]], near)
		old0, new0, line0 = i+1, j+1, align[i]+1
	}
	if !hunk(old0, len(old), new0, len(repl), line0, len(r.texts)) {
		return "", false
	}
	return b.String(), true
}

// end1 returns the line end of line l of the region.
func (r region) end1(l int, outside string) string {
	if l < len(r.ends) {
		return r.ends[l]
	}
	return outside
}

// commonLines returns for each line of b the line of a that it is (a longest common subsequence), or -1.
func commonLines(a, b []string) []int {
	keep := make([]int, len(b))
	for j := range keep {
		keep[j] = -1
	}
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		keep[head] = head
		head++
	}
	x, y := a[head:], b[head:]
	tail := 0
	for tail < min(len(x), len(y)) && x[len(x)-1-tail] == y[len(y)-1-tail] {
		keep[len(b)-1-tail] = len(a) - 1 - tail
		tail++
	}
	x, y = x[:len(x)-tail], y[:len(y)-tail]
	if len(x)*len(y) == 0 || len(x)*len(y) > 1<<20 {
		return keep
	}
	// length[i][j]: longest common subsequence of x[i:] and y[j:].
	width := len(y) + 1
	length := make([]int32, (len(x)+1)*width)
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i] == y[j]:
			keep[head+j] = head + i
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return keep
}

// indents turn the indentation of old into that of the file.
type indents struct {
	exact map[string]string // indentation of old to that of the file, where unambiguous
	add   string            // the file has this much more at the start of every line
	drop  string            // old has this much more
	shift bool              // add or drop holds for every line
	unit  int               // width of one level of old in spaces where the file has a tab; 0: no such rule
	level int               // levels that the file has more, with unit
}

func newIndents(old, file []string, align []int) indents {
	in := indents{exact: map[string]string{}}
	var pairs [][2]string
	for i, l := range align {
		if l < 0 || blank(old[i]) || blank(file[l]) {
			continue
		}
		o, f := indent(old[i]), indent(file[l])
		if prev, ok := in.exact[o]; ok && prev != f {
			in.exact[o] = "\x00" // two answers: none
		} else if !ok {
			in.exact[o] = f
		}
		pairs = append(pairs, [2]string{o, f})
	}
	for o, f := range in.exact {
		if f == "\x00" {
			delete(in.exact, o)
		}
	}
	if len(pairs) == 0 {
		return in
	}
	if add, ok := strings.CutSuffix(pairs[0][1], pairs[0][0]); ok {
		in.add, in.shift = add, true
	} else if drop, ok := strings.CutSuffix(pairs[0][0], pairs[0][1]); ok {
		in.drop, in.shift = drop, true
	}
	for _, p := range pairs {
		if in.add+p[0] != in.drop+p[1] {
			in.shift = false
		}
	}
	for _, unit := range []int{4, 2, 8, 3} {
		level, ok := 0, true
		for k, p := range pairs {
			if strings.Trim(p[0], " ") != "" || strings.Trim(p[1], "\t") != "" || len(p[0])%unit != 0 {
				ok = false
				break
			}
			d := len(p[1]) - len(p[0])/unit
			if k > 0 && d != level {
				ok = false
				break
			}
			level = d
		}
		if ok && !in.shift {
			in.unit, in.level = unit, level
			break
		}
	}
	return in
}

// apply re-indents a new line.
func (in indents) apply(line string) string {
	if len(in.exact) == 0 || blank(line) {
		return line
	}
	own := indent(line)
	rest := line[len(own):]
	if f, ok := in.exact[own]; ok {
		return f + rest
	}
	if in.shift {
		if in.drop != "" {
			return strings.TrimPrefix(own, in.drop) + rest
		}
		return in.add + line
	}
	if in.unit > 0 && strings.Trim(own, " ") == "" {
		return strings.Repeat("\t", max(0, len(own)/in.unit+in.level)) + strings.Repeat(" ", len(own)%in.unit) + rest
	}
	best := ""
	for o := range in.exact {
		if strings.HasPrefix(own, o) && len(o) > len(best) {
			best = o
		}
	}
	if f, ok := in.exact[best]; ok {
		return f + own[len(best):] + rest
	}
	return line
}
