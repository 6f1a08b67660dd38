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
	// memoryMin is in pages.
	memoryMin uint32
	// command says that the function _start is exported.
	command bool
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
		lo, _, shared := r.limits()
		if shared {
			r.fail("shared memory is not supported")
			return
		}
		if lo > 65536 {
			r.fail("memory of %d pages", lo)
			return
		}
		c.info.memoryMin = lo
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
