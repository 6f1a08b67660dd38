package chat

import (
	"fmt"
	"strings"
	"time"
)

// globalNamed is the function of that name that every template can call, nil
// where there is none.
func globalNamed(name string) Value {
	f := func(call func(r *run, line int, a args) Value) Value { return &function{name, call} }
	switch name {
	case "range":
		return f(globalRange)
	case "namespace":
		return f(func(r *run, line int, a args) Value {
			m := NewMap()
			r.update(m, a, line)
			return &namespace{m}
		})
	case "dict":
		return f(func(r *run, line int, a args) Value {
			m := NewMap()
			r.update(m, a, line)
			return m
		})
	case "raise_exception":
		return f(func(r *run, line int, a args) Value {
			m := a.bind(r, line, name, "message")[0]
			if m == nil {
				m = text{}
			}
			panic(&Error{Line: line, Msg: r.str(m, line).s, Raised: true})
		})
	case "strftime_now":
		return f(func(r *run, line int, a args) Value {
			s := r.strArg(a.bind(r, line, name, "format")[0], "", name, line)
			r.charge(16 * len(s.s))
			out, err := strftime(r.opts.Now, s.s)
			if err != nil {
				r.fail(line, "strftime_now: %v", err)
			}
			return derived(out, s)
		})
	case "joiner":
		return f(func(r *run, line int, a args) Value {
			sep := r.strArg(a.bind(r, line, name, "sep")[0], ", ", name, line)
			used := false
			return &function{name, func(*run, int, args) Value {
				if !used {
					used = true
					return text{}
				}
				return sep
			}}
		})
	case "cycler":
		return f(func(r *run, line int, a args) Value {
			if len(a.pos) == 0 {
				r.fail(line, "at least one item has to be provided")
			}
			at := 0
			m := NewMap()
			m.Set("current", a.pos[0])
			set := func(n int) {
				at = n % len(a.pos)
				m.Set("current", a.pos[at])
			}
			m.Set("next", &function{"next", func(*run, int, args) Value {
				v := a.pos[at]
				set(at + 1)
				return v
			}})
			m.Set("reset", &function{"reset", func(*run, int, args) Value {
				set(0)
				return none{}
			}})
			return &namespace{m}
		})
	case "self":
		return &namespace{NewMap()}
	case "lipsum":
		return f(func(r *run, line int, a args) Value {
			r.fail(line, "lipsum is not supported")
			return nil
		})
	}
	return nil
}

func globalRange(r *run, line int, a args) Value {
	n := make([]int, 0, 3)
	for _, v := range a.pos {
		i, ok := intOf(v)
		if !ok {
			r.fail(line, "TypeError: '%s' object cannot be interpreted as an integer", v.pyType())
		}
		n = append(n, i)
	}
	start, stop, step := 0, 0, 1
	switch {
	case len(a.kw) > 0 || len(n) == 0 || len(n) > 3:
		r.fail(line, "TypeError: range takes 1 to 3 arguments")
	case len(n) == 1:
		stop = n[0]
	default:
		start, stop = n[0], n[1]
	}
	if len(n) == 3 {
		step = n[2]
	}
	if step == 0 {
		r.fail(line, "ValueError: range() arg 3 must not be zero")
	}
	const most = 100_000 // Jinja2's MAX_RANGE
	l := &List{form: formRange}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(l.items) == most {
			r.fail(line, "OverflowError: range too big, the limit is %d", most)
		}
		r.charge(cellBytes)
		l.items = append(l.items, integer(i))
		if step > 0 && i > stop-step || step < 0 && i < stop-step {
			break // also keeps i from wrapping around
		}
	}
	return l
}

// strftime formats as C's strftime in the C locale.
func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' {
			b.WriteByte(c)
			continue
		}
		i++
		if i == len(format) {
			b.WriteByte('%')
			break
		}
		pad := true
		if format[i] == '-' && i+1 < len(format) {
			pad = false
			i++
		}
		num := func(n, width int) {
			if pad {
				fmt.Fprintf(&b, "%0*d", width, n)
			} else {
				fmt.Fprintf(&b, "%d", n)
			}
		}
		hour12 := (t.Hour()+11)%12 + 1
		switch format[i] {
		case '%':
			b.WriteByte('%')
		case 'a':
			b.WriteString(t.Format("Mon"))
		case 'A':
			b.WriteString(t.Format("Monday"))
		case 'b', 'h':
			b.WriteString(t.Format("Jan"))
		case 'B':
			b.WriteString(t.Format("January"))
		case 'c':
			b.WriteString(t.Format("Mon Jan _2 15:04:05 2006"))
		case 'C':
			num(t.Year()/100, 2)
		case 'd':
			num(t.Day(), 2)
		case 'D', 'x':
			b.WriteString(t.Format("01/02/06"))
		case 'e':
			fmt.Fprintf(&b, "%2d", t.Day())
		case 'f':
			fmt.Fprintf(&b, "%06d", t.Nanosecond()/1000)
		case 'F':
			b.WriteString(t.Format("2006-01-02"))
		case 'G':
			y, _ := t.ISOWeek()
			num(y, 4)
		case 'H':
			num(t.Hour(), 2)
		case 'I':
			num(hour12, 2)
		case 'j':
			num(t.YearDay(), 3)
		case 'm':
			num(int(t.Month()), 2)
		case 'M':
			num(t.Minute(), 2)
		case 'n':
			b.WriteByte('\n')
		case 'p':
			b.WriteString(t.Format("PM"))
		case 'r':
			b.WriteString(t.Format("03:04:05 PM"))
		case 'R':
			b.WriteString(t.Format("15:04"))
		case 's':
			fmt.Fprintf(&b, "%d", t.Unix())
		case 'S':
			num(t.Second(), 2)
		case 't':
			b.WriteByte('\t')
		case 'T', 'X':
			b.WriteString(t.Format("15:04:05"))
		case 'u':
			num((int(t.Weekday())+6)%7+1, 1)
		case 'U':
			num((t.YearDay()+6-int(t.Weekday()))/7, 2)
		case 'V':
			_, w := t.ISOWeek()
			num(w, 2)
		case 'w':
			num(int(t.Weekday()), 1)
		case 'W':
			num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2)
		case 'y':
			num(t.Year()%100, 2)
		case 'Y':
			num(t.Year(), 4)
		case 'z':
			b.WriteString(t.Format("-0700"))
		case 'Z':
			b.WriteString(t.Format("MST"))
		default:
			return "", fmt.Errorf("unknown directive %%%c", format[i])
		}
	}
	return b.String(), nil
}
