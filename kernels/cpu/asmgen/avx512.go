package main

import "fmt"

// avx512File holds the kernels of the tier avx512vnni. A vector register holds
// 16 rows; as bytes, 16 rows of 4 values each.
func avx512File() *file {
	f := newFile("avx512_amd64.s")
	for _, ft := range formats {
		for _, w := range directWidths {
			direct512(f, ft, w)
		}
	}
	for _, ft := range formats {
		unpack512(f, ft)
	}
	for _, w := range gemmWidths {
		gemm512(f, "Min", w)
		gemm512(f, "Off", w)
		gemm512(f, "Half", w)
	}
	shared(f, vec512)
	return f
}

// shared adds the kernels whose shape does not depend on the tier.
func shared(f *file, v vector) {
	for _, w := range attnWidths[v.lanes] {
		attnScore(f, v, w)
		attnValue(f, v, w)
	}
	for _, kind := range denseKinds {
		for _, s := range denseShapes(v) {
			dense(f, v, kind, s[0], s[1])
		}
	}
}

// prefetchAhead is how far in front of the quants a direct kernel prefetches.
const prefetchAhead = 4096

// masks512 puts the constants of a format's unpacking into z25 and z26.
func masks512(p *fn, ft format) {
	set := func(v uint32, reg string) { p.i("VPBROADCASTD", p.bits(v), reg) }
	switch ft.bits {
	case 8:
		set(0x80808080, z(25))
		return
	case 5:
		set(0x10101010, z(26))
	case 6:
		set(0x30303030, z(26))
	}
	set(0x0f0f0f0f, z(25))
}

// values512 walks the unsigned values of one group at address reg: emit is called
// for each of the 8 steps, in pairs (s, s+4), with the register that holds the
// step. It uses z20..z24.
func values512(p *fn, ft format, reg string, emit func(step int, reg string)) {
	if ft.bits == 8 {
		for s := 0; s < 4; s++ {
			p.i("VPXORD", mem(reg, 64*s), z(25), z(20))
			emit(s, z(20))
			p.i("VPXORD", mem(reg, 64*(s+4)), z(25), z(21))
			emit(s+4, z(21))
		}
		return
	}
	if ft.bits > 4 {
		p.i("VMOVDQU64", mem(reg, 256), z(23))
	}
	if ft.bits > 5 {
		p.i("VMOVDQU64", mem(reg, 320), z(24))
	}
	high := func(plane string, sh int, dst string) {
		src := plane
		switch {
		case sh > 0:
			p.i("VPSLLW", imm(sh), plane, z(22))
			src = z(22)
		case sh < 0:
			p.i("VPSRLW", imm(-sh), plane, z(22))
			src = z(22)
		}
		p.i("VPTERNLOGD", "$0xf8", src, z(26), dst) // dst | mask & src
	}
	for s := 0; s < 4; s++ {
		p.i("VMOVDQU64", mem(reg, 64*s), z(21))
		p.i("VPANDD", z(25), z(21), z(20))
		p.i("VPSRLW", "$4", z(21), z(21))
		p.i("VPANDD", z(25), z(21), z(21))
		switch ft.bits {
		case 5:
			high(z(23), 4-s, z(20))
			high(z(23), -s, z(21))
		case 6:
			high(z(23), 4-2*s, z(20))
			high(z(24), 4-2*s, z(21))
		}
		emit(s, z(20))
		emit(s+4, z(21))
	}
}

// direct512 multiplies packed tiles with w columns, for w so small that unpacking
// a tile first would not pay.
func direct512(f *file, ft format, w int) {
	p := f.fn(fmt.Sprintf("direct%sx%d_512", ft.name, w),
		fmt.Sprintf("multiplies tiles of %s with up to %d columns.", ft.name, w),
		"dst *float32, stride int, cols int, tile *byte, head int, tileBytes int, tiles int, x *byte, groups int, add int")
	facc := func(c int) string { return z(c) }
	lo := func(c int) string { return z(4 + c) }
	hi := func(c int) string { return z(8 + c) }
	fsb := func(c int) string { return z(12 + c) }
	msb := func(c int) string { return z(16 + c) }
	clr := func(r string) { p.i("VPXORD", r, r, r) }

	for _, a := range [][2]string{{"dst", "DI"}, {"stride", "R10"}, {"cols", "DX"}, {"tile", "R13"}, {"tiles", "R11"}, {"x", "R12"}} {
		p.load(a[0], a[1])
	}
	masks512(p, ft)
	if ft.offset > 0 {
		p.i("VPBROADCASTD", p.bits(uint32(ft.offset)), z(31))
	}
	tile := p.newLabel("tile")
	p.place(tile)
	p.i("MOVQ", "R13", "R8")
	p.load("head", "R9")
	p.i("ADDQ", "R13", "R9")
	p.i("MOVQ", "R12", "SI")
	p.load("groups", "CX")
	for c := 0; c < w; c++ {
		clr(facc(c))
	}

	// group emits the 8 steps of one group and leaves the integer sums in lo (and,
	// for scales per 16, the second half in hi).
	group := func() {
		halves := ft.scale == scaleK6
		for c := 0; c < w; c++ {
			switch {
			case halves:
				p.i("VPBROADCASTD", mem("SI", 44*w+4*c), lo(c))
				p.i("VPBROADCASTD", mem("SI", 40*w+4*c), hi(c))
				p.i("VPSUBD", lo(c), hi(c), hi(c))
				p.i("VPSLLVD", z(31), lo(c), lo(c))
				p.i("VPSLLVD", z(31), hi(c), hi(c))
			case ft.offset > 0:
				p.i("VPBROADCASTD", mem("SI", 40*w+4*c), lo(c))
				p.i("VPSLLVD", z(31), lo(c), lo(c))
				clr(hi(c))
			default:
				clr(lo(c))
				clr(hi(c))
			}
		}
		for l := range ft.bits {
			p.i("PREFETCHT0", mem("R9", prefetchAhead+64*l))
		}
		values512(p, ft, "R9", func(s int, r string) {
			for c := 0; c < w; c++ {
				acc := lo(c)
				if s >= 4 {
					acc = hi(c)
				}
				p.i("VPDPBUSD.BCST", mem("SI", 4*w*s+4*c), r, acc)
			}
		})
		if !halves {
			for c := 0; c < w; c++ {
				p.i("VPADDD", hi(c), lo(c), lo(c))
			}
		}
		p.i("ADDQ", imm(ft.groupBytes()), "R9")
	}

	loop := p.newLabel("loop")
	switch ft.scale {
	case scaleD, scaleDM:
		p.place(loop)
		group()
		p.i("VCVTPH2PS", mem("R8", 0), z(27))
		if ft.scale == scaleDM {
			p.i("VCVTPH2PS", mem("R8", 32), z(28))
		}
		for c := 0; c < w; c++ {
			p.i("VCVTDQ2PS", lo(c), lo(c))
			p.i("VMULPS.BCST", mem("SI", 32*w+4*c), z(27), z(29))
			p.i("VFMADD231PS", lo(c), z(29), facc(c))
			if ft.scale == scaleDM {
				p.i("VFMADD231PS.BCST", mem("SI", 36*w+4*c), z(28), facc(c))
			}
		}
		if ft.scale == scaleDM {
			p.i("ADDQ", "$64", "R8")
		} else {
			p.i("ADDQ", "$32", "R8")
		}
		p.i("ADDQ", imm(recordBytes*w), "SI")
		p.i("DECQ", "CX")
		p.i("JNZ", loop)
	case scaleK4, scaleK6:
		p.i("SHRQ", "$3", "CX")
		p.place(loop)
		p.i("MOVQ", "R9", "AX") // end of the header's scales
		p.i("SUBQ", imm(kHeader-kScales), "AX")
		for c := 0; c < w; c++ {
			clr(fsb(c))
			clr(msb(c))
		}
		p.i("MOVQ", "$8", "BX")
		inner := p.newLabel("inner")
		p.place(inner)
		group()
		if ft.scale == scaleK4 {
			p.i("VPMOVZXBD", mem("AX", 0), z(27))
			p.i("VPMOVZXBD", mem("AX", kMins-kScales), z(28))
			p.i("VCVTDQ2PS", z(28), z(28))
			p.i("ADDQ", "$16", "AX")
			for c := 0; c < w; c++ {
				p.i("VPMULLD", z(27), lo(c), lo(c))
				p.i("VCVTDQ2PS", lo(c), lo(c))
				p.i("VFMADD231PS.BCST", mem("SI", 32*w+4*c), lo(c), fsb(c))
				p.i("VFMADD231PS.BCST", mem("SI", 36*w+4*c), z(28), msb(c))
			}
		} else {
			p.i("VPMOVSXBD", mem("AX", 0), z(27))
			p.i("VPMOVSXBD", mem("AX", 16), z(28))
			p.i("ADDQ", "$32", "AX")
			for c := 0; c < w; c++ {
				p.i("VPMULLD", z(27), lo(c), lo(c))
				p.i("VPMULLD", z(28), hi(c), hi(c))
				p.i("VPADDD", hi(c), lo(c), lo(c))
				p.i("VCVTDQ2PS", lo(c), lo(c))
				p.i("VFMADD231PS.BCST", mem("SI", 32*w+4*c), lo(c), fsb(c))
			}
		}
		p.i("ADDQ", imm(recordBytes*w), "SI")
		p.i("DECQ", "BX")
		p.i("JNZ", inner)
		p.i("VCVTPH2PS", mem("R8", 0), z(27))
		if ft.scale == scaleK4 {
			p.i("VCVTPH2PS", mem("R8", 32), z(28))
		}
		for c := 0; c < w; c++ {
			p.i("VFMADD231PS", z(27), fsb(c), facc(c))
			if ft.scale == scaleK4 {
				p.i("VFNMADD231PS", z(28), msb(c), facc(c))
			}
		}
		p.i("ADDQ", imm(kHeader+8*ft.groupBytes()), "R8")
		p.i("ADDQ", imm(kHeader), "R9")
		p.i("DECQ", "CX")
		p.i("JNZ", loop)
	}
	store512(p, w, facc)
	p.i("ADDQ", "$64", "DI")
	p.load("tileBytes", "AX")
	p.i("ADDQ", "AX", "R13")
	p.i("DECQ", "R11")
	p.i("JNZ", tile)
	p.i("VZEROUPPER")
	p.i("RET")
}

// store512 writes the sums of up to w columns (DX of them) to DI, R10 bytes apart,
// adding to what is there if the argument add is not 0. It uses AX and BX.
func store512(p *fn, w int, facc func(int) string) {
	done, plain := p.newLabel("done"), p.newLabel("plain")
	p.i("MOVQ", "DI", "BX")
	p.load("add", "AX")
	p.i("TESTQ", "AX", "AX")
	p.i("JZ", plain)
	for pass := 0; pass < 2; pass++ {
		for c := 0; c < w; c++ {
			if pass == 0 {
				p.i("VADDPS", mem("BX", 0), facc(c), facc(c))
			}
			p.i("VMOVUPS", facc(c), mem("BX", 0))
			if c+1 < w {
				p.i("CMPQ", "DX", imm(c+1))
				p.i("JLE", done)
				p.i("ADDQ", "R10", "BX")
			}
		}
		if pass == 0 {
			p.i("JMP", done)
			p.place(plain)
		}
	}
	p.place(done)
}

// unpack512 turns a packed tile into bytes and float32 scales: per group 8 x 64
// bytes at dst, and 2 x 16 float32 at scales (scale and minimum, or the scales of
// the two halves).
func unpack512(f *file, ft format) {
	p := f.fn(fmt.Sprintf("unpack%s_512", ft.name),
		fmt.Sprintf("unpacks a tile of %s to unsigned bytes and float32 scales.", ft.name),
		"dst *byte, scales *float32, tile *byte, head int, groups int")
	p.load("dst", "DI")
	p.load("scales", "DX")
	p.load("tile", "R8")
	p.load("head", "R9")
	p.load("groups", "CX")
	p.i("ADDQ", "R8", "R9")
	masks512(p, ft)
	group := func() {
		for l := range ft.bits {
			p.i("PREFETCHT0", mem("R9", prefetchAhead+64*l))
		}
		values512(p, ft, "R9", func(s int, r string) { p.i("VMOVDQU64", r, mem("DI", 64*s)) })
		p.i("ADDQ", imm(ft.groupBytes()), "R9")
		p.i("ADDQ", "$512", "DI")
		p.i("ADDQ", "$128", "DX")
	}
	loop := p.newLabel("loop")
	if !ft.super() {
		p.place(loop)
		p.i("VCVTPH2PS", mem("R8", 0), z(27))
		p.i("VMOVUPS", z(27), mem("DX", 0))
		step := 32
		if ft.scale == scaleDM {
			p.i("VCVTPH2PS", mem("R8", 32), z(28))
			p.i("VMOVUPS", z(28), mem("DX", 64))
			step = 64
		}
		p.i("ADDQ", imm(step), "R8")
		group()
		p.i("DECQ", "CX")
		p.i("JNZ", loop)
	} else {
		p.i("SHRQ", "$3", "CX")
		p.place(loop)
		p.i("VCVTPH2PS", mem("R8", 0), z(27))
		if ft.scale == scaleK4 {
			p.i("VCVTPH2PS", mem("R8", 32), z(28))
			p.i("VPXORD", p.negZero(), z(28), z(28))
		}
		p.i("ADDQ", imm(kScales), "R8")
		p.i("MOVQ", "$8", "BX")
		inner := p.newLabel("inner")
		p.place(inner)
		if ft.scale == scaleK4 {
			p.i("VPMOVZXBD", mem("R8", 0), z(29))
			p.i("VPMOVZXBD", mem("R8", kMins-kScales), z(30))
		} else {
			p.i("VPMOVSXBD", mem("R8", 0), z(29))
			p.i("VPMOVSXBD", mem("R8", 16), z(30))
		}
		p.i("VCVTDQ2PS", z(29), z(29))
		p.i("VCVTDQ2PS", z(30), z(30))
		p.i("VMULPS", z(27), z(29), z(29))
		if ft.scale == scaleK4 {
			p.i("VMULPS", z(28), z(30), z(30))
			p.i("ADDQ", "$16", "R8")
		} else {
			p.i("VMULPS", z(27), z(30), z(30))
			p.i("ADDQ", "$32", "R8")
		}
		p.i("VMOVUPS", z(29), mem("DX", 0))
		p.i("VMOVUPS", z(30), mem("DX", 64))
		group()
		p.i("DECQ", "BX")
		p.i("JNZ", inner)
		if ft.scale == scaleK4 { // past the minimums
			p.i("ADDQ", "$128", "R8")
		}
		p.i("ADDQ", imm(8*ft.groupBytes()), "R8")
		p.i("ADDQ", imm(kHeader), "R9")
		p.i("DECQ", "CX")
		p.i("JNZ", loop)
	}
	p.i("VZEROUPPER")
	p.i("RET")
}

// kind512 returns the kind of gemm512 that multiplies a format.
func (f format) kind512() string {
	return map[scaling]string{scaleD: "Off", scaleDM: "Min", scaleK4: "Min", scaleK6: "Half"}[f.scale]
}

// gemm512 multiplies an unpacked tile with a panel of w columns. Kinds: Min has a
// scale and a minimum per group, Off a scale and an offset 1<<shift that is taken
// off through the sums of the activations, Half the same with a scale per half.
func gemm512(f *file, kind string, w int) {
	p := f.fn(fmt.Sprintf("gemm%sx%d_512", kind, w),
		fmt.Sprintf("multiplies an unpacked tile with a panel of %d columns.", w),
		"dst *float32, stride int, cols int, wq *byte, scales *float32, x *byte, groups int, shift int, add int")
	facc := func(c int) string { return z(c) }
	acc := func(c int) string { return z(12 + c) }
	for _, a := range [][2]string{{"dst", "DI"}, {"stride", "R10"}, {"cols", "DX"}, {"wq", "R8"}, {"scales", "R9"}, {"x", "SI"}, {"groups", "CX"}} {
		p.load(a[0], a[1])
	}
	if kind != "Min" {
		p.load("shift", "AX")
		p.i("VPBROADCASTD", "AX", z(31))
	}
	for c := 0; c < w; c++ {
		p.i("VPXORD", facc(c), facc(c), facc(c))
	}
	loop := p.newLabel("loop")
	p.place(loop)
	steps := func(from, to int) {
		for s := from; s < to; s++ {
			wr := z(24 + s%2)
			p.i("VMOVDQU64", mem("R8", 64*s), wr)
			for c := 0; c < w; c++ {
				p.i("VPDPBUSD.BCST", mem("SI", 4*w*s+4*c), wr, acc(c))
			}
		}
	}
	scale := func(ws string) {
		for c := 0; c < w; c++ {
			t := z(28 + c%2)
			p.i("VCVTDQ2PS", acc(c), acc(c))
			p.i("VMULPS.BCST", mem("SI", 32*w+4*c), ws, t)
			p.i("VFMADD231PS", acc(c), t, facc(c))
		}
	}
	p.i("VMOVUPS", mem("R9", 0), z(26))
	switch kind {
	case "Min":
		for c := 0; c < w; c++ {
			p.i("VPXORD", acc(c), acc(c), acc(c))
		}
		steps(0, 8)
		p.i("VMOVUPS", mem("R9", 64), z(27))
		scale(z(26))
		for c := 0; c < w; c++ {
			p.i("VFMADD231PS.BCST", mem("SI", 36*w+4*c), z(27), facc(c))
		}
	case "Off":
		for c := 0; c < w; c++ {
			p.i("VPBROADCASTD", mem("SI", 40*w+4*c), acc(c))
			p.i("VPSLLVD", z(31), acc(c), acc(c))
		}
		steps(0, 8)
		scale(z(26))
	case "Half":
		for c := 0; c < w; c++ {
			p.i("VPBROADCASTD", mem("SI", 44*w+4*c), acc(c))
			p.i("VPSLLVD", z(31), acc(c), acc(c))
		}
		steps(0, 4)
		scale(z(26))
		p.i("VMOVUPS", mem("R9", 64), z(27))
		for c := 0; c < w; c++ {
			p.i("VPBROADCASTD", mem("SI", 40*w+4*c), acc(c))
			p.i("VPSUBD.BCST", mem("SI", 44*w+4*c), acc(c), acc(c))
			p.i("VPSLLVD", z(31), acc(c), acc(c))
		}
		steps(4, 8)
		scale(z(27))
	}
	p.i("ADDQ", imm(recordBytes*w), "SI")
	p.i("ADDQ", "$512", "R8")
	p.i("ADDQ", "$128", "R9")
	p.i("DECQ", "CX")
	p.i("JNZ", loop)
	store512(p, w, facc)
	p.i("VZEROUPPER")
	p.i("RET")
}

// negZero returns a register that holds 16 times -0.0.
func (p *fn) negZero() string {
	p.i("VPBROADCASTD", p.bits(0x80000000), z(31))
	return z(31)
}
