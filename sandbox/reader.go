package sandbox

import "fmt"

// reader walks bytes; after the first error every result is zero.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) left() int { return len(r.b) - r.at }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) byte() byte {
	if r.err != nil || r.left() < 1 {
		r.fail("short data")
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *reader) take(n int64) []byte {
	if r.err != nil || n < 0 || n > int64(r.left()) {
		r.fail("short data")
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

func (r *reader) uleb(bits int) uint64 {
	var v uint64
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		if rest := bits - shift; rest < 7 && b>>rest != 0 {
			r.fail("a number is too large")
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail("a number is too long")
	return 0
}

func (r *reader) u32() uint32 { return uint32(r.uleb(32)) }

// sleb skips a signed number of at most n bytes.
func (r *reader) sleb(n int) {
	for range n {
		if b := r.byte(); b < 0x80 || r.err != nil {
			return
		}
	}
	r.fail("a number is too long")
}

// vector reads a count and compares it with what could be there at that many bytes an item, and with a cap.
func (r *reader) vector(itemBytes, cap int) int {
	n := uint64(r.u32())
	switch {
	case r.err != nil:
		return 0
	case n*uint64(itemBytes) > uint64(r.left()):
		r.fail("count of %d does not fit into %d bytes", n, r.left())
		return 0
	case n > uint64(cap):
		r.fail("count of %d is above %d", n, cap)
		return 0
	}
	return int(n)
}

func (r *reader) name() string { return string(r.take(int64(r.u32()))) }

func (r *reader) valueType() byte {
	t := r.byte()
	switch t {
	case 0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f:
	default:
		r.fail("value type 0x%02x", t)
	}
	return t
}

// limits reads minimum and maximum; a maximum that is not given is the largest there is.
func (r *reader) limits() (lo uint32, hi uint64, shared bool) {
	flags := r.byte()
	if flags > 3 {
		r.fail("limits of form %d", flags)
		return 0, 0, false
	}
	lo, hi = r.u32(), 1<<32-1
	if flags&1 != 0 {
		hi = uint64(r.u32())
		if hi < uint64(lo) {
			r.fail("limits of %d to %d", lo, hi)
		}
	}
	return lo, hi, flags&2 != 0
}

// constExpr skips a constant expression.
func (r *reader) constExpr() {
	for r.err == nil {
		switch op := r.byte(); op {
		case 0x0b: // end
			return
		case 0x41: // i32.const
			r.sleb(5)
		case 0x42: // i64.const
			r.sleb(10)
		case 0x43: // f32.const
			r.take(4)
		case 0x44: // f64.const
			r.take(8)
		case 0x23, 0xd2: // global.get, ref.func
			r.u32()
		case 0xd0: // ref.null
			r.valueType()
		case 0xfd: // v128.const
			if r.u32() != 12 {
				r.fail("a constant expression with a vector operation")
			}
			r.take(16)
		default:
			r.fail("a constant expression with instruction 0x%02x", op)
		}
	}
}

func appendULEB(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
