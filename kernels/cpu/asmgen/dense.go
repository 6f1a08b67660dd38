package main

import "fmt"

// dense multiplies rows of floats with columns of float32: r rows x c columns at a
// time, k values along a register. It stores r x c sums, column by column.
func dense(f *file, v vector, kind string, r, c int) {
	p := f.fn(fmt.Sprintf("dense%sx%dx%d_%s", kind, r, c, v.tag),
		fmt.Sprintf("multiplies %d rows of %s with %d columns; k is a multiple of %d.", r, kind, c, v.lanes),
		"sums *float32, w *byte, rowBytes int, x *float32, colBytes int, k int")
	size := 2
	if kind == "F32" {
		size = 4
	}
	// AVX-512 has the sums in the upper registers, so that the lower ones, which
	// every instruction can name, are free for adding them up.
	base, low := 0, r*c
	if v.lanes == 16 {
		base, low = 16, 0
	}
	acc := func(i, j int) int { return base + j*r + i }
	wr := func(i int) int { return low + i }
	xr := low + r
	rows, cols := []string{"SI", "R8", "R9", "R10"}, []string{"DX", "R11", "R12", "R13"}
	p.load("w", rows[0])
	p.load("rowBytes", "AX")
	for i := 1; i < r; i++ {
		p.i("LEAQ", "("+rows[i-1]+")(AX*1)", rows[i])
	}
	p.load("x", cols[0])
	p.load("colBytes", "AX")
	for j := 1; j < c; j++ {
		p.i("LEAQ", "("+cols[j-1]+")(AX*1)", cols[j])
	}
	p.load("k", "CX")
	for a := range r * c {
		v.clear(p, base+a)
	}
	loop, done := p.newLabel("loop"), p.newLabel("done")
	p.i("TESTQ", "CX", "CX")
	p.i("JZ", done)
	p.place(loop)
	for i := range r {
		switch kind {
		case "F32":
			p.i("VMOVUPS", mem(rows[i], 0), v.r(wr(i)))
		case "F16":
			p.i("VCVTPH2PS", mem(rows[i], 0), v.r(wr(i)))
		case "BF16":
			p.i("VPMOVZXWD", mem(rows[i], 0), v.r(wr(i)))
			p.i("VPSLLD", "$16", v.r(wr(i)), v.r(wr(i)))
		}
		p.i("ADDQ", imm(size*v.lanes), rows[i])
	}
	for j := range c {
		p.i("VMOVUPS", mem(cols[j], 0), v.r(xr))
		for i := range r {
			p.i("VFMADD231PS", v.r(xr), v.r(wr(i)), v.r(acc(i, j)))
		}
		p.i("ADDQ", imm(v.bytes()), cols[j])
	}
	p.i("SUBQ", imm(v.lanes), "CX")
	p.i("JNZ", loop)
	p.place(done)
	p.load("sums", "DI")
	for a := range r * c {
		sum := a
		if v.lanes == 16 {
			p.i("VEXTRACTF64X4", "$1", z(base+a), yy(0))
			p.i("VADDPS", yy(base+a), yy(0), yy(0))
			sum = 0
		}
		p.horizontal(sum, "VADDPS", xr)
		p.i("VMOVSS", x(sum), mem("DI", 4*a))
	}
	p.i("VZEROUPPER")
	p.i("RET")
}

// denseShapes lists the register tiles of a tier, rows x columns.
func denseShapes(v vector) [][2]int {
	if v.lanes == 16 {
		return [][2]int{{4, 4}, {4, 1}, {1, 1}}
	}
	return [][2]int{{4, 2}, {4, 1}, {1, 1}}
}

var denseKinds = []string{"F32", "F16", "BF16"}
