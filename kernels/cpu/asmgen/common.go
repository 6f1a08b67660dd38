package main

// commonFile holds the kernels that both tiers use: AVX2, FMA and F16C. Lengths
// are multiples of 8 unless it says otherwise.
func commonFile() *file {
	f := newFile("common_amd64.s")
	detect(f)
	pause(f)
	quantize(f)
	sumSquares(f)
	scaleGain(f)
	swiGLU(f)
	add(f)
	toHalf(f)
	softmax(f)
	ropeNeoX(f)
	ropeNorm(f)
	return f
}

// pause is one turn of a spin loop.
func pause(f *file) {
	p := f.fn("pause", "tells the core that it spins, n times.", "n int")
	p.load("n", "CX")
	loop := p.newLabel("loop")
	p.place(loop)
	p.i("PAUSE")
	p.i("DECQ", "CX")
	p.i("JNZ", loop)
	p.i("RET")
}

// each writes a loop over n values in AX, 8 at a time; body may use CX as the
// byte offset.
func (p *fn) each(body func()) {
	loop, done := p.newLabel("loop"), p.newLabel("done")
	p.i("XORQ", "CX", "CX")
	p.i("SHLQ", "$2", "AX")
	p.i("TESTQ", "AX", "AX")
	p.i("JZ", done)
	p.place(loop)
	body()
	p.i("ADDQ", "$32", "CX")
	p.i("CMPQ", "CX", "AX")
	p.i("JLT", loop)
	p.place(done)
}

// at is the address base + CX.
func at(base string) string { return "(" + base + ")(CX*1)" }

func sumSquares(f *file) {
	p := f.fn("sumSquares", "stores the sum of the squares of n values.", "sum *float32, x *float32, n int")
	p.load("x", "SI")
	p.load("n", "AX")
	for r := range 4 {
		p.i("VPXOR", yy(r), yy(r), yy(r))
	}
	// Four chains, taken in turn, so that additions do not wait for each other.
	p.each(func() {
		p.i("VMOVUPS", at("SI"), yy(4))
		p.i("VFMADD231PS", yy(4), yy(4), yy(3))
		p.i("VMOVAPS", yy(3), yy(5))
		p.i("VMOVAPS", yy(2), yy(3))
		p.i("VMOVAPS", yy(1), yy(2))
		p.i("VMOVAPS", yy(0), yy(1))
		p.i("VMOVAPS", yy(5), yy(0))
	})
	p.i("VADDPS", yy(1), yy(0), yy(0))
	p.i("VADDPS", yy(3), yy(2), yy(2))
	p.i("VADDPS", yy(2), yy(0), yy(0))
	p.horizontal(0, "VADDPS", 1)
	p.load("sum", "DI")
	p.i("VMOVSS", x(0), mem("DI", 0))
	p.i("VZEROUPPER")
	p.i("RET")
}

// horizontal folds the 8 lanes of yN with op into lane 0 of xN; t is free.
func (p *fn) horizontal(n int, op string, t int) {
	p.i("VEXTRACTF128", "$1", yy(n), x(t))
	p.i(op, x(t), x(n), x(n))
	p.i("VPSHUFD", "$0x4e", x(n), x(t))
	p.i(op, x(t), x(n), x(n))
	p.i("VPSHUFD", "$0xb1", x(n), x(t))
	p.i(op, x(t), x(n), x(n))
}

func scaleGain(f *file) {
	p := f.fn("scaleGain", "computes dst = x * scale * gain over n values.", "dst *float32, x *float32, gain *float32, scale *float32, n int")
	p.load("dst", "DI")
	p.load("x", "SI")
	p.load("gain", "DX")
	p.load("scale", "BX")
	p.load("n", "AX")
	p.i("VBROADCASTSS", mem("BX", 0), yy(0))
	p.each(func() {
		p.i("VMULPS", at("SI"), yy(0), yy(1))
		p.i("VMULPS", at("DX"), yy(1), yy(1))
		p.i("VMOVUPS", yy(1), at("DI"))
	})
	p.i("VZEROUPPER")
	p.i("RET")
}

func add(f *file) {
	p := f.fn("addTo", "computes dst += x over n values.", "dst *float32, x *float32, n int")
	p.load("dst", "DI")
	p.load("x", "SI")
	p.load("n", "AX")
	p.each(func() {
		p.i("VMOVUPS", at("SI"), yy(0))
		p.i("VADDPS", at("DI"), yy(0), yy(0))
		p.i("VMOVUPS", yy(0), at("DI"))
	})
	p.i("VZEROUPPER")
	p.i("RET")
}

// Registers of exp: expConsts fills y6..y15 once, exp computes in place.
func (p *fn) expConsts() {
	set := func(addr string, r int) { p.i("VBROADCASTSS", addr, yy(r)) }
	set(p.f32(1.44269504), 15)     // 1/ln 2
	set(p.bits(0x3f318000), 14)    // ln 2, high part: 0.693359375
	set(p.f32(-2.12194440e-4), 13) // ln 2, low part
	set(p.f32(1), 12)
	set(p.f32(88.3), 11)
	set(p.f32(-87.3), 10)
	set(p.f32(0.5), 9)
}

// exp replaces y[n] by its exponential: x = k ln 2 + r with |r| <= ln 2 / 2, e^r by
// its Taylor polynomial of degree 7 (error 5e-9), 2^k through the exponent bits.
// Arguments are held within [-87.3, 88.3]; NaN stays NaN. t, u are free.
func (p *fn) exp(n, t, u int) {
	p.i("VMAXPS", yy(n), yy(10), yy(n))
	p.i("VMINPS", yy(n), yy(11), yy(n))
	p.i("VMULPS", yy(15), yy(n), yy(t))
	p.i("VROUNDPS", "$0", yy(t), yy(t))
	p.i("VFNMADD231PS", yy(14), yy(t), yy(n))
	p.i("VFNMADD231PS", yy(13), yy(t), yy(n))
	p.i("VCVTPS2DQ", yy(t), yy(t))
	p.i("VPSLLD", "$23", yy(t), yy(t))
	p.i("VBROADCASTSS", p.f32(1.0/5040), yy(u))
	for _, c := range []float32{1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6} {
		p.i("VBROADCASTSS", p.f32(c), yy(8))
		p.i("VFMADD213PS", yy(8), yy(n), yy(u))
	}
	p.i("VFMADD213PS", yy(9), yy(n), yy(u))
	p.i("VFMADD213PS", yy(12), yy(n), yy(u))
	p.i("VFMADD213PS", yy(12), yy(u), yy(n))
	p.i("VPADDD", yy(t), yy(n), yy(n))
}

func swiGLU(f *file) {
	p := f.fn("swiGLU", "computes dst = gate / (1 + exp(-gate)) * up over n values.", "dst *float32, gate *float32, up *float32, n int")
	p.load("dst", "DI")
	p.load("gate", "SI")
	p.load("up", "DX")
	p.load("n", "AX")
	p.expConsts()
	p.i("VBROADCASTSS", p.bits(0x80000000), yy(7))
	p.each(func() {
		p.i("VMOVUPS", at("SI"), yy(0))
		p.i("VXORPS", yy(7), yy(0), yy(1))
		p.exp(1, 2, 3)
		p.i("VADDPS", yy(12), yy(1), yy(1))
		p.i("VDIVPS", yy(1), yy(0), yy(0))
		p.i("VMULPS", at("DX"), yy(0), yy(0))
		p.i("VMOVUPS", yy(0), at("DI"))
	})
	p.i("VZEROUPPER")
	p.i("RET")
}

func toHalf(f *file) {
	p := f.fn("toHalf", "rounds n values to half precision.", "dst *uint16, x *float32, n int")
	p.load("dst", "DI")
	p.load("x", "SI")
	p.load("n", "AX")
	p.each(func() {
		p.i("VMOVUPS", at("SI"), yy(0))
		p.i("VCVTPS2PH", "$0", yy(0), x(0))
		p.i("VMOVDQU", x(0), mem("DI", 0))
		p.i("ADDQ", "$16", "DI")
	})
	p.i("VZEROUPPER")
	p.i("RET")
}

// softmax is one step of an online softmax: state holds the running maximum, the
// running sum and, on return, the factor by which what was summed so far shrinks.
func softmax(f *file) {
	p := f.fn("softmax", "turns n scores to exponentials (n any positive number; up to the next multiple of 8 is zeroed).", "s *float32, n int, state *float32")
	p.load("s", "SI")
	p.load("n", "AX")
	p.load("state", "DX")
	p.expConsts()
	// Fill the last vector up with -inf, whose exponential comes out as e^-87.3 and
	// is cleared below.
	fill, filled := p.newLabel("fill"), p.newLabel("filled")
	p.i("MOVQ", "AX", "BX")
	p.place(fill)
	p.i("TESTQ", "$7", "BX")
	p.i("JZ", filled)
	p.i("MOVL", "$0xff800000", "(SI)(BX*4)")
	p.i("INCQ", "BX")
	p.i("JMP", fill)
	p.place(filled)
	p.i("MOVQ", "AX", "R8")
	p.i("MOVQ", "BX", "AX")
	p.i("VBROADCASTSS", mem("DX", 0), yy(0))
	p.each(func() { p.i("VMAXPS", at("SI"), yy(0), yy(0)) })
	p.horizontal(0, "VMAXPS", 1)
	p.i("VBROADCASTSS", x(0), yy(0)) // new maximum
	p.i("VBROADCASTSS", mem("DX", 0), yy(1))
	p.i("VMOVSS", x(0), mem("DX", 0))
	p.i("VSUBPS", yy(0), yy(1), yy(1))
	p.exp(1, 2, 3)
	p.i("VMOVSS", x(1), mem("DX", 8)) // factor
	p.i("VMULSS", mem("DX", 4), x(1), x(4))
	p.i("VPXOR", yy(5), yy(5), yy(5))
	p.i("MOVQ", "BX", "AX")
	p.each(func() {
		p.i("VMOVUPS", at("SI"), yy(1))
		p.i("VSUBPS", yy(0), yy(1), yy(1))
		p.exp(1, 2, 3)
		p.i("VADDPS", yy(1), yy(5), yy(5))
		p.i("VMOVUPS", yy(1), at("SI"))
	})
	p.horizontal(5, "VADDPS", 1)
	p.i("VADDSS", x(5), x(4), x(4))
	wipe, wiped := p.newLabel("wipe"), p.newLabel("wiped")
	p.place(wipe)
	p.i("CMPQ", "R8", "BX")
	p.i("JGE", wiped)
	p.i("MOVL", "$0", "(SI)(R8*4)")
	p.i("INCQ", "R8")
	p.i("JMP", wipe)
	p.place(wiped)
	p.i("VMOVSS", x(4), mem("DX", 4))
	p.i("VZEROUPPER")
	p.i("RET")
}

func ropeNeoX(f *file) {
	p := f.fn("ropeNeoX", "rotates n pairs: a[i], b[i] by the angle whose cosine and sine are given.", "a *float32, b *float32, cos *float32, sin *float32, n int")
	p.load("a", "DI")
	p.load("b", "SI")
	p.load("cos", "DX")
	p.load("sin", "BX")
	p.load("n", "AX")
	p.each(func() {
		p.i("VMOVUPS", at("DI"), yy(0))
		p.i("VMOVUPS", at("SI"), yy(1))
		p.i("VMOVUPS", at("DX"), yy(2))
		p.i("VMOVUPS", at("BX"), yy(3))
		p.i("VMULPS", yy(1), yy(3), yy(4))
		p.i("VMULPS", yy(0), yy(3), yy(5))
		p.i("VFMSUB213PS", yy(4), yy(2), yy(0))
		p.i("VFMADD213PS", yy(5), yy(2), yy(1))
		p.i("VMOVUPS", yy(0), at("DI"))
		p.i("VMOVUPS", yy(1), at("SI"))
	})
	p.i("VZEROUPPER")
	p.i("RET")
}

func ropeNorm(f *file) {
	p := f.fn("ropeNorm", "rotates n/2 pairs of neighbours of x; cos and sin hold n/2 values.", "x *float32, cos *float32, sin *float32, n int")
	p.load("x", "DI")
	p.load("cos", "DX")
	p.load("sin", "BX")
	p.load("n", "AX")
	p.each(func() {
		for _, r := range []struct {
			base string
			n    int
		}{{"DX", 2}, {"BX", 3}} { // c0 c0 c1 c1 ...
			p.i("VMOVUPS", mem(r.base, 0), x(r.n))
			p.i("VUNPCKHPS", x(r.n), x(r.n), x(4))
			p.i("VUNPCKLPS", x(r.n), x(r.n), x(r.n))
			p.i("VINSERTF128", "$1", x(4), yy(r.n), yy(r.n))
			p.i("ADDQ", "$16", r.base)
		}
		p.i("VMOVUPS", at("DI"), yy(0))
		p.i("VPERMILPS", "$0xb1", yy(0), yy(1))
		p.i("VMULPS", yy(1), yy(3), yy(1))
		p.i("VFMADDSUB213PS", yy(1), yy(2), yy(0))
		p.i("VMOVUPS", yy(0), at("DI"))
	})
	p.i("VZEROUPPER")
	p.i("RET")
}
