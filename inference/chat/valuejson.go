package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxJSONDepth bounds nesting of what FromJSON reads.
const maxJSONDepth = 200

// maxNumberLen bounds the digits of one number: reading decimal digits into a big
// integer takes quadratic time.
const maxNumberLen = 1000

// FromJSON reads one JSON document. Objects keep the order of their keys, the last of
// equal keys wins, integers stay integers of any size, and every string counts
// as text from outside.
func FromJSON(data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read JSON: more than one value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (Value, error) {
	tok, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxJSONDepth)
	}
	switch tok := tok.(type) {
	case nil:
		return none{}, nil
	case bool:
		return boolean(tok), nil
	case string:
		return outside(tok), nil
	case json.Number:
		return numberValue(string(tok))
	case json.Delim:
		if tok == '[' {
			l := NewList()
			for d.More() {
				v, err := readJSON(d, depth+1)
				if err != nil {
					return nil, err
				}
				l.Append(v)
			}
			_, err := d.Token()
			return l, err
		}
		m := NewMap()
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			m.set(hashKey{'s', k.(string)}, outside(k.(string)), v)
		}
		_, err := d.Token()
		return m, err
	}
	panic(fmt.Sprintf("BUG: JSON token %T", tok))
}

// numberValue reads a JSON number as Python's json module does: an integer where
// it has neither fraction nor exponent.
func numberValue(s string) (Value, error) {
	if len(s) > maxNumberLen {
		return nil, fmt.Errorf("number of %d digits", len(s))
	}
	if !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return integer(i), nil
		}
		if b, ok := new(big.Int).SetString(s, 10); ok {
			return bigint{b}, nil
		}
		return nil, fmt.Errorf("number %q", s)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("number %q", s)
	}
	return float(f), nil
}

// jsonStyle is how tojson writes.
type jsonStyle struct {
	ascii    bool
	indent   *string // nil: one line
	item     string  // between items
	key      string  // between key and value
	sortKeys bool
}

var jsonPython = jsonStyle{item: ", ", key: ": "}

// writeJSON writes v as json.dumps does.
func (r *run) writeJSON(b *textBuilder, v Value, st *jsonStyle, depth, line int) {
	r.enter(line)
	defer r.leave()
	switch v := v.(type) {
	case none:
		b.lit("null")
	case boolean:
		b.lit(map[boolean]string{true: "true", false: "false"}[v])
	case integer:
		b.lit(strconv.FormatInt(int64(v), 10))
	case bigint:
		b.lit(v.String())
	case float:
		b.lit(jsonFloat(float64(v)))
	case text:
		b.add(derived(jsonQuote(v.s, st.ascii), v))
	case *List:
		if v.form > formTuple {
			r.fail(line, "TypeError: Object of type %s is not JSON serializable", v.pyType())
		}
		if len(v.items) == 0 {
			b.lit("[]")
			return
		}
		b.lit("[")
		for i, it := range v.items {
			if i > 0 {
				b.lit(st.item)
			}
			st.newline(b, depth+1)
			r.writeJSON(b, it, st, depth+1, line)
		}
		st.newline(b, depth)
		b.lit("]")
	case *Map:
		if len(v.keys) == 0 {
			b.lit("{}")
			return
		}
		order := make([]int, len(v.keys))
		for i := range order {
			order[i] = i
		}
		if st.sortKeys {
			r.sortBy(order, line, func(i int) Value { return v.keys[i] }, false)
		}
		b.lit("{")
		for n, i := range order {
			if n > 0 {
				b.lit(st.item)
			}
			st.newline(b, depth+1)
			switch k := v.keys[i].(type) {
			case text:
				b.add(derived(jsonQuote(k.s, st.ascii), k))
			case none, boolean, integer, bigint, float:
				b.lit(`"`)
				r.writeJSON(b, k, st, depth+1, line)
				b.lit(`"`)
			default:
				r.fail(line, "TypeError: keys must be str, int, float, bool or None, not %s", k.pyType())
			}
			b.lit(st.key)
			r.writeJSON(b, v.vals[i], st, depth+1, line)
		}
		st.newline(b, depth)
		b.lit("}")
	default:
		r.fail(line, "TypeError: Object of type %s is not JSON serializable", v.pyType())
	}
}

func (st *jsonStyle) newline(b *textBuilder, depth int) {
	if st.indent == nil {
		return
	}
	b.lit("\n")
	for range depth {
		b.lit(*st.indent)
	}
}

// jsonQuote quotes s as Python does: `"`, `\` and control characters escaped,
// everything else as it stands (ascii: as \u escapes).
func jsonQuote(s string, ascii bool) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	last := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x80 {
			if !ascii {
				i++
				continue
			}
			b.WriteString(s[last:i])
			c, n := utf8.DecodeRuneInString(s[i:])
			if c > 0xffff {
				c -= 0x10000
				fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
			} else {
				fmt.Fprintf(&b, `\u%04x`, c)
			}
			i += n
			last = i
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		b.WriteString(s[last:i])
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
		i++
		last = i
	}
	b.WriteString(s[last:])
	b.WriteByte('"')
	return b.String()
}

func jsonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	return floatRepr(f)
}
