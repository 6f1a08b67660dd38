package main

// quantize rounds one column of activations, group by group, to the records that
// the matrix kernels read; wBytes is four times the number of columns of the panel
// and dst the address of the column in the first record. It follows
// kernels.QuantizeGroup bit for bit, on amd64, where a conversion that overflows
// gives 0x80000000 and so the byte 0.
func quantize(f *file) {
	p := f.fn("quantize", "rounds the groups of one column to records of quantised activations.",
		"dst *byte, x *float32, groups int, wBytes int")
	p.load("dst", "DI")
	p.load("x", "SI")
	p.load("groups", "CX")
	p.load("wBytes", "R8")
	p.i("LEAQ", "(R8)(R8*2)", "R9")
	p.i("VBROADCASTSS", p.bits(0x7fffffff), yy(15))
	p.i("VPXOR", yy(14), yy(14), yy(14))
	p.i("VMOVSS", p.f32(127), x(13))
	p.i("VPBROADCASTD", p.bits(0x01010101), x(12))
	p.i("VBROADCASTI128", p.pick(), yy(11))
	loop := p.newLabel("loop")
	p.place(loop)
	for r := range 4 {
		p.i("VMOVUPS", mem("SI", 32*r), yy(r))
		// With zero as the second source a NaN counts as zero.
		p.i("VANDPS", yy(r), yy(15), yy(4+r))
		p.i("VMAXPS", yy(14), yy(4+r), yy(4+r))
	}
	p.i("VMAXPS", yy(5), yy(4), yy(4))
	p.i("VMAXPS", yy(7), yy(6), yy(6))
	p.i("VMAXPS", yy(6), yy(4), yy(4))
	p.horizontal(4, "VMAXPS", 5)
	p.i("VDIVSS", x(4), x(13), x(5))  // 127 / max
	p.i("VDIVSS", x(13), x(4), x(10)) // scale
	p.i("VBROADCASTSS", x(5), yy(5))
	for r := range 4 {
		p.i("VMULPS", yy(5), yy(r), yy(r))
		p.i("VCVTPS2DQ", yy(r), yy(r))
		p.i("VPSHUFB", yy(11), yy(r), yy(r)) // low bytes of each half to its first dword
	}
	// y0 = a0 .. | a1 .., so the dwords in order are x0[0], y0[4], x1[0], ...
	p.i("VPUNPCKLDQ", yy(1), yy(0), yy(0)) // a0 b0 | a1 b1
	p.i("VPUNPCKLDQ", yy(3), yy(2), yy(2)) // c0 d0 | c1 d1
	p.i("VEXTRACTI128", "$1", yy(0), x(1))
	p.i("VEXTRACTI128", "$1", yy(2), x(3))
	p.i("VPUNPCKLDQ", x(1), x(0), x(0)) // a0 a1 b0 b1
	p.i("VPUNPCKLDQ", x(3), x(2), x(2)) // c0 c1 d0 d1
	for h, r := range []int{0, 2} {
		p.i("VMOVD", x(r), mem("DI", 0))
		p.i("VPEXTRD", "$1", x(r), "(DI)(R8*1)")
		p.i("VPEXTRD", "$2", x(r), "(DI)(R8*2)")
		p.i("VPEXTRD", "$3", x(r), "(DI)(R9*1)")
		p.i("LEAQ", "(DI)(R8*4)", "DI")
		// Sums: 1 * byte in pairs, then pairs of pairs.
		p.i("VPMADDUBSW", x(r), x(12), x(6+h))
	}
	p.i("VPHADDW", x(7), x(6), x(6)) // 4 words of the first half, 4 of the second
	p.i("VPHADDW", x(6), x(6), x(6))
	p.i("VPHADDW", x(6), x(6), x(6))
	p.i("VPEXTRW", "$0", x(6), "AX")
	p.i("VPEXTRW", "$1", x(6), "BX")
	p.i("MOVWLSX", "AX", "AX")
	p.i("MOVWLSX", "BX", "BX")
	p.i("ADDL", "AX", "BX")
	p.i("VCVTSI2SSL", "BX", x(14), x(8))
	p.i("VMULSS", x(10), x(8), x(8))
	p.i("NEGL", "AX")
	p.i("NEGL", "BX")
	p.i("VMOVSS", x(10), mem("DI", 0))
	p.i("VMOVSS", x(8), "(DI)(R8*1)")
	p.i("MOVL", "BX", "(DI)(R8*2)")
	p.i("MOVL", "AX", "(DI)(R9*1)")
	p.i("LEAQ", "(DI)(R8*4)", "DI")
	p.i("ADDQ", "$128", "SI")
	p.i("DECQ", "CX")
	p.i("JNZ", loop)
	p.i("VZEROUPPER")
	p.i("RET")
}

// pick is a byte shuffle that gathers bytes 0, 4, 8, 12 and clears the rest.
func (p *fn) pick() string {
	f := p.file
	for len(f.consts)%4 != 0 { // any place will do; 16 bytes in a row
		f.consts = append(f.consts, 0)
	}
	at := len(f.consts)
	f.consts = append(f.consts, 0x0c080400, 0x80808080, 0x80808080, 0x80808080)
	return p.constAt(at)
}
