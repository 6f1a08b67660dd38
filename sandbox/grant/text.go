package grant

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String returns the text form: one line for each part, in a fixed order, paths and values quoted as Go strings.
// Parse reads it back. Limits are printed with their defaults filled in.
func (g Grant) String() string {
	var b strings.Builder
	for _, m := range g.Mounts {
		fmt.Fprintf(&b, "mount %s %q", m.Kind, m.Host)
		if m.GuestPath() != m.Host {
			fmt.Fprintf(&b, " at %q", m.Guest)
		}
		b.WriteByte('\n')
	}
	for _, e := range g.Env {
		fmt.Fprintf(&b, "env %q\n", e)
	}
	if g.Clock {
		b.WriteString("clock\n")
	}
	if g.Random {
		b.WriteString("random\n")
	}
	l := g.Limits.OrDefaults()
	fmt.Fprintf(&b, "limit wall %v memory_pages %d output_bytes %d stderr_bytes %d written_bytes %d open_files %d files %d\n",
		l.Wall, l.MemoryPages, l.OutputBytes, l.StderrBytes, l.WrittenBytes, l.OpenFiles, l.Files)
	return b.String()
}

// Parse reads the text form. Unknown words are an error, never ignored.
func Parse(text string) (Grant, error) {
	var g Grant
	for n, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		words, err := fields(line)
		if err == nil {
			err = g.parseLine(words)
		}
		if err != nil {
			return Grant{}, fmt.Errorf("parse grant line %d: %w", n+1, err)
		}
	}
	if err := g.Validate(); err != nil {
		return Grant{}, fmt.Errorf("parse grant: %w", err)
	}
	return g, nil
}

func (g *Grant) parseLine(w []string) error {
	switch {
	case w[0] == "mount" && (len(w) == 3 || len(w) == 5 && w[3] == "at"):
		kind, err := ParseKind(w[1])
		if err != nil {
			return err
		}
		m := Mount{Kind: kind, Host: w[2]}
		if len(w) == 5 && w[4] != m.Host {
			m.Guest = w[4]
		}
		g.Mounts = append(g.Mounts, m)
	case w[0] == "env" && len(w) == 2:
		g.Env = append(g.Env, w[1])
	case w[0] == "clock" && len(w) == 1:
		g.Clock = true
	case w[0] == "random" && len(w) == 1:
		g.Random = true
	case w[0] == "limit" && len(w)%2 == 1:
		for i := 1; i < len(w); i += 2 {
			if err := g.Limits.set(w[i], w[i+1]); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("unknown form %q", strings.Join(w, " "))
	}
	return nil
}

func (l *Limits) set(name, value string) (err error) {
	whole := func(bits int) int64 {
		n, perr := strconv.ParseInt(value, 10, bits)
		if perr != nil || n < 0 {
			err = fmt.Errorf("limit %s: %q is not a number of that range", name, value)
		}
		return n
	}
	switch name {
	case "wall":
		d, perr := time.ParseDuration(value)
		if perr != nil || d < 0 {
			return fmt.Errorf("limit wall: %q is not a duration", value)
		}
		l.Wall = d
	case "memory_pages":
		l.MemoryPages = uint32(whole(32))
	case "output_bytes":
		l.OutputBytes = whole(64)
	case "stderr_bytes":
		l.StderrBytes = whole(64)
	case "written_bytes":
		l.WrittenBytes = whole(64)
	case "open_files":
		l.OpenFiles = int(whole(32))
	case "files":
		l.Files = int(whole(32))
	default:
		return fmt.Errorf("unknown limit %q", name)
	}
	return err
}

// fields splits a line at blanks; a word that starts with a quotation mark is a Go string.
func fields(line string) ([]string, error) {
	var out []string
	for {
		line = strings.TrimLeft(line, " \t\r")
		if line == "" {
			return out, nil
		}
		if line[0] == '"' {
			q, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("unterminated string %q", line)
			}
			s, err := strconv.Unquote(q)
			if err != nil {
				return nil, fmt.Errorf("string %s: %w", q, err)
			}
			out, line = append(out, s), line[len(q):]
			continue
		}
		end := strings.IndexAny(line, " \t\r")
		if end < 0 {
			end = len(line)
		}
		out, line = append(out, line[:end]), line[end:]
	}
}
