package sandbox

// data reads the data segments. On the way it joins neighbours: the Go linker leaves out short runs of zeros and so
// makes ten thousand small segments, each of which costs the engine time whenever a module is instantiated.
func (c *checker) data(r *reader) []byte {
	n := r.vector(2, c.caps.datas)
	c.datas = n
	join := joiner{may: c.dataCount < 0}
	for range n {
		at := r.at
		var offset int64 = -1
		switch flags := r.u32(); flags {
		case 0:
			expr := r.at
			r.constExpr()
			if r.err == nil {
				offset = constI32(r.b[expr:r.at])
			}
		case 1:
		case 2:
			r.u32()
			r.constExpr()
		default:
			r.fail("data segment of form %d", flags)
		}
		content := r.take(int64(r.u32()))
		if r.err != nil {
			return nil
		}
		join.add(offset, content, r.b[at:r.at])
	}
	return join.section()
}

// joiner collects data segments. Segments may be joined when no instruction can name them, which is so in a module
// without a count of data segments, and when each starts behind the one before: memory starts as zeros, so that the
// gap may be written too. A segment of another form, or with a computed offset, stays as it is.
type joiner struct {
	may   bool
	out   []byte
	count int
	open  bool
	start int64
	buf   []byte
	// filled are the parts of memory that earlier segments fill, start and end: a gap must not write over them.
	filled [][2]int64
}

// maxFilled bounds the search through filled; with more parts only true neighbours are joined.
const maxFilled = 64

// free reports whether no earlier segment fills a part of the gap.
func (j *joiner) free(from, to int64) bool {
	if from == to {
		return true
	}
	if len(j.filled) > maxFilled {
		return false
	}
	for _, f := range j.filled {
		if from < f[1] && f[0] < to {
			return false
		}
	}
	return true
}

// joinGap is the longest run of zeros that is written instead of starting a new segment, in bytes.
const joinGap = 1 << 10

func (j *joiner) add(offset int64, content, whole []byte) {
	if !j.may || offset < 0 {
		j.may = false // where it lies is not known, so that no gap is known to be empty
		j.flush()
		j.out = append(j.out, whole...)
		j.count++
		return
	}
	if end := j.start + int64(len(j.buf)); j.open && offset >= end && offset-end <= joinGap && j.free(end, offset) {
		j.buf = append(append(j.buf, make([]byte, offset-end)...), content...)
		return
	}
	j.flush()
	j.open, j.start, j.buf = true, offset, append(j.buf[:0], content...)
}

func (j *joiner) flush() {
	if !j.open {
		return
	}
	j.out = append(j.out, 0, 0x41)
	j.out = appendSLEB(j.out, int32(uint32(j.start)))
	j.out = append(j.out, 0x0b)
	j.out = appendULEB(j.out, uint64(len(j.buf)))
	j.out = append(j.out, j.buf...)
	j.count++
	j.open = false
	if len(j.filled) <= maxFilled {
		j.filled = append(j.filled, [2]int64{j.start, j.start + int64(len(j.buf))})
	}
}

func (j *joiner) section() []byte {
	j.flush()
	return append(appendULEB(nil, uint64(j.count)), j.out...)
}

// constI32 returns the value of an expression that is one i32.const, as an unsigned offset, and -1 for any other.
func constI32(expr []byte) int64 {
	if len(expr) < 3 || expr[0] != 0x41 || expr[len(expr)-1] != 0x0b {
		return -1
	}
	var v uint32
	for i, b := range expr[1 : len(expr)-1] {
		v |= uint32(b&0x7f) << (7 * i)
		if b >= 0x80 {
			continue
		}
		if i != len(expr)-3 {
			return -1
		}
		if shift := 7 * (i + 1); b&0x40 != 0 && shift < 32 {
			v |= ^uint32(0) << shift
		}
	}
	return int64(v)
}

func appendSLEB(b []byte, v int32) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
