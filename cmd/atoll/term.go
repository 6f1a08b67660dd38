package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// visibleWriter makes what is written safe for a terminal: a terminal takes
// commands in its data, and what a model, a file or a tool says must not become
// one. Control characters, C1 controls, bytes that are not UTF-8 and the
// characters that reorder text appear in a visible form; newline and tab pass.
//
// It keeps state between writes: a character cut in two by a stream is put
// together. Flush shows what is left of one.
type visibleWriter struct {
	w    io.Writer
	held []byte // the beginning of a UTF-8 character, at most 3 bytes
	cr   bool   // a carriage return that a newline may follow
}

func (v *visibleWriter) Write(p []byte) (int, error) {
	data := append(v.held, p...)
	v.held = nil
	var b strings.Builder
	b.Grow(len(data))
	for len(data) > 0 {
		if !utf8.FullRune(data) {
			v.held = append(v.held, data...)
			break
		}
		r, size := utf8.DecodeRune(data)
		if v.cr {
			v.cr = false
			if r != '\n' {
				b.WriteString("^M")
			}
		}
		switch {
		case r == '\r':
			v.cr = true
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, data[0])
		default:
			writeVisible(&b, r)
		}
		data = data[size:]
	}
	if _, err := io.WriteString(v.w, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush shows a character that never became whole.
func (v *visibleWriter) Flush() error {
	var b strings.Builder
	if v.cr {
		v.cr = false
		b.WriteString("^M")
	}
	for _, c := range v.held {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	v.held = nil
	_, err := io.WriteString(v.w, b.String())
	return err
}

func writeVisible(b *strings.Builder, r rune) {
	switch {
	case r == '\n' || r == '\t':
		b.WriteRune(r)
	case r < 0x20:
		b.WriteByte('^')
		b.WriteByte(byte(r) + '@')
	case r == 0x7f:
		b.WriteString("^?")
	case r >= 0x80 && r <= 0x9f, isReordering(r):
		fmt.Fprintf(b, "<U+%04X>", r)
	default:
		b.WriteRune(r)
	}
}

// isReordering reports the characters that change the direction of text, by
// which a line can be made to read as another.
func isReordering(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}

// visible is the form of a text that may be shown in one line: line breaks are
// made visible, too; tabs stay.
func visible(s string) string {
	var b strings.Builder
	v := visibleWriter{w: &b}
	v.Write([]byte(s))
	v.Flush()
	return strings.ReplaceAll(b.String(), "\n", "^J")
}

// asciiControls makes JSON safe for a terminal. encoding/json escapes what is
// below 0x20; DEL and the C1 controls are escaped here. The value stays the same.
func asciiControls(json []byte) []byte {
	var out []byte
	last := 0
	for i := 0; i < len(json); {
		if c := json[i]; c == 0x7f || (c == 0xc2 && i+1 < len(json) && json[i+1] >= 0x80 && json[i+1] <= 0x9f) {
			out = append(out, json[last:i]...)
			r, size := rune(c), 1
			if c == 0xc2 {
				r, size = rune(json[i+1]), 2
			}
			out = fmt.Appendf(out, `\u%04x`, r)
			i += size
			last = i
			continue
		}
		i++
	}
	if last == 0 {
		return json
	}
	return append(out, json[last:]...)
}
