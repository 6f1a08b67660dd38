package agent

import "strings"

// replaced finds the lines of a file that a block shows in another form: the block is a part of the file with one place changed.
// Lines that stand once in the file, and are long enough to be the file's own, tie the two together; the place is what differs
// between two tied lines, or behind the last one. The result is whole lines without the last line end, and unique in the file;
// it is "" where there is no such place, or more than one.
func replaced(file, block string) string {
	f, b := strings.Split(file, "\n"), strings.Split(strings.TrimRight(block, " \t\r\n"), "\n")
	where := map[string]int{} // line of the file; -1 where it stands more than once
	for i, line := range f {
		key := strings.TrimSpace(line)
		if _, ok := where[key]; ok {
			where[key] = -1
		} else {
			where[key] = i
		}
	}
	type tie struct{ b, f int }
	var ties []tie
	for i, line := range b {
		key := strings.TrimSpace(line)
		at, ok := where[key]
		if !ok || at < 0 || len(key) < telling || len(ties) > 0 && at <= ties[len(ties)-1].f {
			continue
		}
		ties = append(ties, tie{i, at})
	}
	if len(ties) == 0 {
		return ""
	}
	// Behind the last tie, as many lines of the file as the block has left.
	last := ties[len(ties)-1]
	end := min(last.f+len(b)-last.b, len(f))
	ties = append(ties, tie{len(b), end})
	from, to := -1, -1
	for i := 1; i < len(ties); i++ {
		fs, fe, bs, be := ties[i-1].f+1, ties[i].f, ties[i-1].b+1, ties[i].b
		for fs < fe && bs < be && strings.TrimSpace(f[fs]) == strings.TrimSpace(b[bs]) {
			fs, bs = fs+1, bs+1
		}
		for fe > fs && be > bs && strings.TrimSpace(f[fe-1]) == strings.TrimSpace(b[be-1]) {
			fe, be = fe-1, be-1
		}
		if fs == fe && bs == be {
			continue
		}
		if from >= 0 {
			return "" // a second place
		}
		from, to = fs, fe
	}
	if from < 0 {
		return ""
	}
	// An insertion has no line of its own: take the one before. So does text that stands twice.
	for strings.TrimSpace(strings.Join(f[from:to], "")) == "" || strings.Count(file, strings.Join(f[from:to], "\n")) != 1 {
		if from == 0 {
			return ""
		}
		from--
	}
	return strings.Join(f[from:to], "\n")
}
