package text

import (
	"bytes"
	"math/bits"
)

// Load64 returns the first eight bytes of b, the first one lowest. It compiles to one load.
func Load64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// CountLines returns the number of newlines in b. It looks at eight bytes at a time: inside
// WebAssembly that is several times as fast as bytes.Count, and reading line 20,000,000 of a file is
// nothing but this.
func CountLines(b []byte) int {
	const (
		newlines = 0x0a0a0a0a0a0a0a0a
		low7     = 0x7f7f7f7f7f7f7f7f
	)
	n := 0
	for len(b) >= 32 {
		// A byte of x is zero where b has a newline; bit 7 of y is clear exactly there.
		x0 := Load64(b) ^ newlines
		x1 := Load64(b[8:]) ^ newlines
		x2 := Load64(b[16:]) ^ newlines
		x3 := Load64(b[24:]) ^ newlines
		y0 := ((x0&low7 + low7) | x0 | low7)
		y1 := ((x1&low7 + low7) | x1 | low7)
		y2 := ((x2&low7 + low7) | x2 | low7)
		y3 := ((x3&low7 + low7) | x3 | low7)
		// All other bits of y are set, so the clear bits of the four can be counted in one word.
		n += bits.OnesCount64(^y0 | ^y1>>1 | ^y2>>2 | ^y3>>3)
		b = b[32:]
	}
	for _, c := range b {
		if c == '\n' {
			n++
		}
	}
	return n
}

// AfterLine returns the offset in b just past its n-th newline; n is from 1 to CountLines(b).
func AfterLine(b []byte, n int) int {
	pos := 0
	for ; n > 0; n-- {
		i := bytes.IndexByte(b[pos:], '\n')
		if i < 0 {
			panic("BUG: text: line beyond the end")
		}
		pos += i + 1
	}
	return pos
}
