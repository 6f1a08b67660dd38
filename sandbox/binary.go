package sandbox

import (
	"errors"
	"fmt"
)

// binaryCaps are the counts and sizes that a module may have. They are far above what compilers make and far below
// what hurts: decoding and compiling are not stopped by a deadline, so they must be small enough to finish.
type binaryCaps struct {
	moduleBytes, bodyBytes                      int
	types, params, imports, functions, exports  int
	tables, globals, elements, datas            int
	tableElements, segmentElements, totalLocals int
	functionLocals                              int
}

var thirdPartyCaps = binaryCaps{
	moduleBytes: 64 << 20, bodyBytes: 1 << 20,
	types: 10000, params: 1000, imports: 1000, functions: 200000, exports: 10000,
	tables: 16, globals: 100000, elements: 100000, datas: 100000,
	tableElements: 1 << 20, segmentElements: 1 << 22, totalLocals: 1 << 22, functionLocals: 10000,
}

// builtinCaps allow what the Go toolchain makes of large programs: functions of many megabytes do not occur, long ones
// do.
var builtinCaps = func() binaryCaps {
	c := thirdPartyCaps
	c.bodyBytes, c.functionLocals = 16<<20, 50000
	return c
}()

// importRef names one import of a module.
type importRef struct{ module, name, kind string }

// moduleInfo is what the bounded check learns about a module.
type moduleInfo struct {
	imports []importRef
	// memoryMin and memoryMax are in pages; hasMemory says that the module defines a memory.
	memoryMin, memoryMax uint32
	hasMemory            bool
	// start says that a function runs at instantiation; command that the function _start is exported.
	start, command bool
}

// Section ids of the binary format, in the order they must come (WebAssembly core specification 2.0, section 5.5).
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
)

var sectionOrder = map[byte]int{
	secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secGlobal: 6, secExport: 7, secStart: 8,
	secElement: 9, secDataCount: 10, secCode: 11, secData: 12,
}

// checkBinary reads a module within bounds: every count is compared with the bytes that are left before anything is
// made of it. It knows structure, not types: what it lets through is still validated by the engine.
//
// It returns the module to run: tables have a maximum, data segments are joined, and custom sections, which only serve
// debuggers, are gone. With loops every function starts with an empty loop, where the engine asks whether the call must
// end.
func checkBinary(wasm []byte, caps binaryCaps, loops bool) (*moduleInfo, []byte, error) {
	if len(wasm) > caps.moduleBytes {
		return nil, nil, fmt.Errorf("%d bytes are more than %d", len(wasm), caps.moduleBytes)
	}
	if len(wasm) < 8 || string(wasm[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, nil, errors.New("not a WebAssembly 1 module")
	}
	c := &checker{caps: caps, loops: loops, info: &moduleInfo{}, dataCount: -1}
	c.out = append(make([]byte, 0, len(wasm)+len(wasm)/8), wasm[:8]...)
	r := &reader{b: wasm, at: 8}
	last := 0
	for r.left() > 0 {
		id := r.byte()
		size := r.u32()
		body := r.take(int64(size))
		if r.err != nil {
			return nil, nil, fmt.Errorf("section %d: %w", id, r.err)
		}
		if id == secCustom {
			if err := c.custom(body); err != nil {
				return nil, nil, err
			}
			continue
		}
		order, ok := sectionOrder[id]
		if !ok {
			return nil, nil, fmt.Errorf("section %d: unknown", id)
		}
		if order <= last {
			return nil, nil, fmt.Errorf("section %d: out of order or twice", id)
		}
		last = order
		if err := c.section(id, body); err != nil {
			return nil, nil, err
		}
	}
	if c.bodies != c.functions {
		return nil, nil, fmt.Errorf("%d functions have %d bodies", c.functions, c.bodies)
	}
	if c.dataCount >= 0 && c.dataCount != c.datas {
		return nil, nil, fmt.Errorf("%d data segments are announced, %d are there", c.dataCount, c.datas)
	}
	return c.info, c.out, nil
}

type checker struct {
	caps      binaryCaps
	loops     bool
	info      *moduleInfo
	out       []byte
	functions int
	bodies    int
	datas     int
	dataCount int // -1: no such section
	locals    int
	elements  int
}

func (c *checker) custom(body []byte) error {
	r := &reader{b: body}
	r.name()
	if r.err != nil {
		return fmt.Errorf("custom section: %w", r.err)
	}
	return nil
}

func (c *checker) section(id byte, body []byte) error {
	r := &reader{b: body}
	replaced := body
	switch id {
	case secType:
		c.types(r)
	case secImport:
		c.imports(r)
	case secFunction:
		c.functions = r.vector(1, c.caps.functions)
		for range c.functions {
			r.u32()
		}
	case secTable:
		replaced = c.tableSection(r)
	case secMemory:
		c.memorySection(r)
	case secGlobal:
		for range r.vector(3, c.caps.globals) {
			r.valueType()
			r.byte()
			r.constExpr()
		}
	case secExport:
		for range r.vector(3, c.caps.exports) {
			name, kind := r.name(), r.byte()
			r.u32()
			if name == "_start" && kind == 0 {
				c.info.command = true
			}
		}
	case secStart:
		c.info.start = true
		r.u32()
	case secElement:
		for range r.vector(2, c.caps.elements) {
			c.element(r)
		}
	case secDataCount:
		c.dataCount = int(r.u32())
	case secCode:
		replaced = c.code(r)
	case secData:
		replaced = c.data(r)
	}
	if r.err == nil && r.left() > 0 {
		r.fail("data after its end")
	}
	if r.err != nil {
		return fmt.Errorf("section %d: %w", id, r.err)
	}
	c.out = append(c.out, id)
	c.out = appendULEB(c.out, uint64(len(replaced)))
	c.out = append(c.out, replaced...)
	return nil
}

func (c *checker) types(r *reader) {
	for range r.vector(3, c.caps.types) {
		if r.byte() != 0x60 {
			r.fail("a type is not a function type")
			return
		}
		for range 2 {
			for range r.vector(1, c.caps.params) {
				r.valueType()
			}
		}
	}
}

func (c *checker) imports(r *reader) {
	kinds := []string{"function", "table", "memory", "global"}
	for range r.vector(4, c.caps.imports) {
		ref := importRef{module: r.name(), name: r.name()}
		kind := r.byte()
		switch kind {
		case 0:
			r.u32()
		case 1:
			r.valueType()
			r.limits()
		case 2:
			r.limits()
		case 3:
			r.valueType()
			r.byte()
		default:
			r.fail("import of kind %d", kind)
			return
		}
		ref.kind = kinds[kind]
		c.info.imports = append(c.info.imports, ref)
	}
}

// tableSection gives every table a maximum: tables live outside of the memory that is limited.
func (c *checker) tableSection(r *reader) []byte {
	n := r.vector(3, c.caps.tables)
	out := appendULEB(nil, uint64(n))
	total := 0
	for range n {
		elem := r.valueType()
		lo, hi, _ := r.limits()
		total += int(lo)
		if total > c.caps.tableElements {
			r.fail("tables of more than %d elements", c.caps.tableElements)
			return nil
		}
		out = append(out, elem, 1)
		out = appendULEB(out, uint64(lo))
		out = appendULEB(out, min(hi, uint64(c.caps.tableElements)))
	}
	return out
}

func (c *checker) memorySection(r *reader) {
	for range r.vector(2, 1) {
		lo, hi, shared := r.limits()
		if shared {
			r.fail("shared memory is not supported")
			return
		}
		if lo > 65536 {
			r.fail("memory of %d pages", lo)
			return
		}
		c.info.hasMemory = true
		c.info.memoryMin, c.info.memoryMax = lo, uint32(min(hi, 65536))
	}
}

// element reads one element segment: eight forms, by the low three bits of its flags.
func (c *checker) element(r *reader) {
	flags := r.u32()
	if flags > 7 {
		r.fail("element segment of form %d", flags)
		return
	}
	if flags&1 == 0 { // active
		if flags&2 != 0 {
			r.u32()
		}
		r.constExpr()
	}
	if flags&3 != 0 { // element kind or type
		r.byte()
	}
	n := r.vector(1, c.caps.segmentElements)
	if c.elements += n; c.elements > c.caps.segmentElements {
		r.fail("element segments of more than %d elements", c.caps.segmentElements)
		return
	}
	for range n {
		if flags&4 != 0 {
			r.constExpr()
		} else {
			r.u32()
		}
		if r.err != nil {
			return
		}
	}
}

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

// emptyLoop is `loop (no type) end`.
var emptyLoop = []byte{0x03, 0x40, 0x0b}

func (c *checker) code(r *reader) []byte {
	n := r.vector(2, c.caps.functions)
	c.bodies = n
	var out []byte
	if c.loops {
		out = appendULEB(make([]byte, 0, len(r.b)+5*n), uint64(n))
	}
	for range n {
		body := r.take(int64(r.u32()))
		if r.err != nil {
			return nil
		}
		if len(body) > c.caps.bodyBytes {
			r.fail("a function of %d bytes is longer than %d", len(body), c.caps.bodyBytes)
			return nil
		}
		f := &reader{b: body}
		sum := uint64(0)
		for range f.vector(2, c.caps.functionLocals) {
			sum += uint64(f.u32())
			f.valueType()
			if sum > uint64(c.caps.functionLocals) {
				f.fail("a function of more than %d locals", c.caps.functionLocals)
			}
			if f.err != nil {
				break
			}
		}
		c.locals += int(sum)
		if f.err == nil && c.locals > c.caps.totalLocals {
			f.fail("functions of more than %d locals together", c.caps.totalLocals)
		}
		if f.err == nil && (f.left() == 0 || body[len(body)-1] != 0x0b) {
			f.fail("a function without an end")
		}
		if f.err != nil {
			r.err = f.err
			return nil
		}
		if c.loops {
			out = appendULEB(out, uint64(len(body)+len(emptyLoop)))
			out = append(out, body[:f.at]...)
			out = append(out, emptyLoop...)
			out = append(out, body[f.at:]...)
		}
	}
	if !c.loops {
		return r.b
	}
	return out
}

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
