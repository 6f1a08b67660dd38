package main

import "fmt"

// avx2File holds the kernels of the tier avx2. A register holds 8 rows, half of a
// tile: as bytes, 8 rows of 4 values each.
//
// There is no instruction that adds four products of bytes to a 32-bit sum, so
// products are added in pairs to 16 bits (VPMADDUBSW), as many of those as cannot
// overflow are added up, and then pairs go to 32 bits (VPMADDWD by ones).
func avx2File() *file {
	f := newFile("avx2_amd64.s")
	for _, ft := range formats {
		direct256(f, ft)
	}
	for _, ft := range formats {
		unpack256(f, ft)
	}
	for _, k := range gemmKinds256 {
		for _, w := range gemmWidths {
			gemm256(f, k, w)
		}
	}
	shared(f, vec256)
	return f
}

// kind256 is a shape of byte kernel.
type kind256 struct {
	name  string
	scale string // Min, Off, Half: as for AVX-512; Sign: a scale per group, signed values
	bits  int
	shift int // log2 of the offset
}

var gemmKinds256 = []kind256{
	{"Min4", "Min", 4, 0},
	{"Min5", "Min", 5, 0},
	{"Off4", "Off", 4, 3},
	{"Off5", "Off", 5, 4},
	{"Half6", "Half", 6, 5},
	{"Sign8", "Sign", 8, 0},
}

// kind256 returns the byte kernel of a format.
func (f format) kind256() kind256 {
	want := map[scaling]string{scaleD: "Off", scaleDM: "Min", scaleK4: "Min", scaleK6: "Half"}[f.scale]
	for _, k := range gemmKinds256 {
		if k.bits == f.bits && (k.scale == want || f.bits == 8) {
			return k
		}
	}
	panic("asmgen: no kernel for " + f.name)
}

// flush tells how many steps of values of so many bits, times 127 and two at a
// time, fit in 16 bits: 8 * 2 * 15 * 127 = 30480 and so on. Signed values count as
// 128 at most: 2 * 128 * 127 = 32512.
func flush(bits int) int { return map[int]int{4: 8, 5: 4, 6: 2, 8: 1}[bits] }

// values256 walks half a group at address reg, as values512 does. It uses y4..y8
// and the masks in y9 and y10.
func values256(p *fn, ft format, reg string, half int, emit func(step int, reg string)) {
	off := 32 * half
	if ft.bits == 8 {
		for s := range 8 {
			p.i("VMOVDQU", mem(reg, 64*s+off), y(5))
			emit(s, y(5))
		}
		return
	}
	if ft.bits > 4 {
		p.i("VMOVDQU", mem(reg, 256+off), y(7))
	}
	if ft.bits > 5 {
		p.i("VMOVDQU", mem(reg, 320+off), y(8))
	}
	high := func(plane int, sh int, dst string) {
		switch {
		case sh > 0:
			p.i("VPSLLW", imm(sh), y(plane), y(4))
		case sh < 0:
			p.i("VPSRLW", imm(-sh), y(plane), y(4))
		}
		if sh == 0 {
			p.i("VPAND", y(10), y(plane), y(4))
		} else {
			p.i("VPAND", y(10), y(4), y(4))
		}
		p.i("VPOR", y(4), dst, dst)
	}
	for s := range 4 {
		p.i("VMOVDQU", mem(reg, 64*s+off), y(6))
		p.i("VPAND", y(9), y(6), y(5))
		p.i("VPSRLW", "$4", y(6), y(6))
		p.i("VPAND", y(9), y(6), y(6))
		switch ft.bits {
		case 5:
			high(7, 4-s, y(5))
			high(7, -s, y(6))
		case 6:
			high(7, 4-2*s, y(5))
			high(8, 4-2*s, y(6))
		}
		emit(s, y(5))
		emit(s+4, y(6))
	}
}

func masks256(p *fn, ft format) {
	if ft.bits == 8 {
		return
	}
	p.i("VPBROADCASTD", p.bits(0x0f0f0f0f), y(9))
	switch ft.bits {
	case 5:
		p.i("VPBROADCASTD", p.bits(0x10101010), y(10))
	case 6:
		p.i("VPBROADCASTD", p.bits(0x30303030), y(10))
	}
}

// direct256 multiplies packed tiles with one column.
func direct256(f *file, ft format) {
	p := f.fn(fmt.Sprintf("direct%sx1_256", ft.name),
		fmt.Sprintf("multiplies tiles of %s with one column.", ft.name),
		"dst *float32, stride int, cols int, tile *byte, head int, tileBytes int, tiles int, x *byte, groups int, add int")
	k := ft.kind256()
	halves := k.scale == "Half"
	clr := func(r string) { p.i("VPXOR", r, r, r) }
	for _, a := range [][2]string{{"dst", "DI"}, {"tile", "R13"}, {"tiles", "R11"}, {"x", "R12"}} {
		p.load(a[0], a[1])
	}
	masks256(p, ft)
	p.i("VPBROADCASTD", p.bits(0x00010001), y(11))
	tile := p.newLabel("tile")
	p.place(tile)
	p.i("MOVQ", "R13", "R8")
	p.load("head", "R9")
	p.i("ADDQ", "R13", "R9")
	p.i("MOVQ", "R12", "SI")
	p.load("groups", "CX")
	clr(y(0))
	clr(y(1))

	// sums leaves the integer sums of half a group in y15 (and y3, of the second 16
	// values, for scales per 16).
	sums := func(half int) {
		limit := flush(ft.bits)
		n16, n32 := [2]int{}, [2]int{}
		i16, i32 := []string{y(13), y(14)}, []string{y(15), y(3)}
		widen := func(a int) {
			if n32[a] == 0 {
				p.i("VPMADDWD", y(11), i16[a], i32[a])
			} else {
				p.i("VPMADDWD", y(11), i16[a], i16[a])
				p.i("VPADDD", i16[a], i32[a], i32[a])
			}
			n32[a]++
			n16[a] = 0
		}
		values256(p, ft, "R9", half, func(s int, r string) {
			a := 0
			if halves && s >= 4 {
				a = 1
			}
			p.i("VPBROADCASTD", mem("SI", 4*s), y(12))
			if ft.bits == 8 {
				p.i("VPSIGNB", r, y(12), y(12))
				p.i("VPABSB", r, r)
			}
			if n16[a] == 0 {
				p.i("VPMADDUBSW", y(12), r, i16[a])
			} else {
				p.i("VPMADDUBSW", y(12), r, y(12))
				p.i("VPADDW", y(12), i16[a], i16[a])
			}
			if n16[a]++; n16[a] == limit {
				widen(a)
			}
		})
		for a := range 2 {
			if n16[a] > 0 {
				widen(a)
			}
		}
		switch {
		case halves:
			p.i("VPBROADCASTD", mem("SI", 44), y(12))
			p.i("VPBROADCASTD", mem("SI", 40), y(13))
			p.i("VPSUBD", y(12), y(13), y(13))
			for a, r := range []string{y(12), y(13)} {
				p.i("VPSLLD", imm(k.shift), r, r)
				p.i("VPADDD", r, i32[a], i32[a])
			}
		case k.shift > 0:
			p.i("VPBROADCASTD", mem("SI", 40), y(12))
			p.i("VPSLLD", imm(k.shift), y(12), y(12))
			p.i("VPADDD", y(12), i32[0], i32[0])
		}
	}
	// scaled adds the sums of half a group, given its scale in y4 and, if there is
	// one, its minimum in y5.
	scaled := func(half int, min, negative bool) {
		p.i("VCVTDQ2PS", y(15), y(15))
		p.i("VBROADCASTSS", mem("SI", 32), y(12))
		p.i("VMULPS", y(12), y(4), y(4))
		p.i("VFMADD231PS", y(15), y(4), y(half))
		if min {
			p.i("VBROADCASTSS", mem("SI", 36), y(12))
			op := "VFMADD231PS"
			if negative {
				op = "VFNMADD231PS"
			}
			p.i(op, y(12), y(5), y(half))
		}
	}
	prefetch := func() {
		for l := range ft.bits {
			p.i("PREFETCHT0", mem("R9", prefetchAhead+64*l))
		}
	}
	loop := p.newLabel("loop")
	if !ft.super() {
		p.place(loop)
		prefetch()
		for h := range 2 {
			sums(h)
			p.i("VCVTPH2PS", mem("R8", 16*h), y(4))
			if ft.scale == scaleDM {
				p.i("VCVTPH2PS", mem("R8", 32+16*h), y(5))
			}
			scaled(h, ft.scale == scaleDM, false)
		}
		step := 32
		if ft.scale == scaleDM {
			step = 64
		}
		p.i("ADDQ", imm(step), "R8")
		p.i("ADDQ", imm(ft.groupBytes()), "R9")
		p.i("ADDQ", imm(recordBytes), "SI")
		p.i("DECQ", "CX")
		p.i("JNZ", loop)
	} else {
		p.i("SHRQ", "$3", "CX")
		p.place(loop)
		p.i("LEAQ", mem("R8", kScales), "AX")
		p.i("MOVQ", "$8", "BX")
		inner := p.newLabel("inner")
		p.place(inner)
		prefetch()
		for h := range 2 {
			sums(h)
			if ft.scale == scaleK4 {
				p.i("VPMOVZXBD", mem("AX", 8*h), y(4))
				p.i("VPMOVZXBD", mem("AX", kMins-kScales+8*h), y(5))
				p.i("VCVTDQ2PS", y(4), y(4))
				p.i("VCVTDQ2PS", y(5), y(5))
				p.i("VCVTPH2PS", mem("R8", 16*h), y(12))
				p.i("VCVTPH2PS", mem("R8", 32+16*h), y(13))
				p.i("VMULPS", y(12), y(4), y(4))
				p.i("VMULPS", y(13), y(5), y(5))
				scaled(h, true, true)
			} else {
				p.i("VPMOVSXBD", mem("AX", 8*h), y(4))
				p.i("VPMOVSXBD", mem("AX", 16+8*h), y(5))
				p.i("VPMULLD", y(4), y(15), y(15))
				p.i("VPMULLD", y(5), y(3), y(3))
				p.i("VPADDD", y(3), y(15), y(15))
				p.i("VCVTPH2PS", mem("R8", 16*h), y(4))
				scaled(h, false, false)
			}
		}
		if ft.scale == scaleK4 {
			p.i("ADDQ", "$16", "AX")
		} else {
			p.i("ADDQ", "$32", "AX")
		}
		p.i("ADDQ", imm(ft.groupBytes()), "R9")
		p.i("ADDQ", imm(recordBytes), "SI")
		p.i("DECQ", "BX")
		p.i("JNZ", inner)
		p.i("ADDQ", imm(kHeader+8*ft.groupBytes()), "R8")
		p.i("ADDQ", imm(kHeader), "R9")
		p.i("DECQ", "CX")
		p.i("JNZ", loop)
	}
	plain := p.newLabel("plain")
	p.load("add", "AX")
	p.i("TESTQ", "AX", "AX")
	p.i("JZ", plain)
	p.i("VADDPS", mem("DI", 0), y(0), y(0))
	p.i("VADDPS", mem("DI", 32), y(1), y(1))
	p.place(plain)
	p.i("VMOVUPS", y(0), mem("DI", 0))
	p.i("VMOVUPS", y(1), mem("DI", 32))
	p.i("ADDQ", "$64", "DI")
	p.load("tileBytes", "AX")
	p.i("ADDQ", "AX", "R13")
	p.i("DECQ", "R11")
	p.i("JNZ", tile)
	p.i("VZEROUPPER")
	p.i("RET")
}

// unpack256 is unpack512 for this tier, but leaves 8-bit values signed.
func unpack256(f *file, ft format) {
	p := f.fn(fmt.Sprintf("unpack%s_256", ft.name),
		fmt.Sprintf("unpacks a tile of %s to bytes and float32 scales.", ft.name),
		"dst *byte, scales *float32, tile *byte, head int, groups int")
	p.load("dst", "DI")
	p.load("scales", "DX")
	p.load("tile", "R8")
	p.load("head", "R9")
	p.load("groups", "CX")
	p.i("ADDQ", "R8", "R9")
	masks256(p, ft)
	group := func() {
		for l := range ft.bits {
			p.i("PREFETCHT0", mem("R9", prefetchAhead+64*l))
		}
		for h := range 2 {
			values256(p, ft, "R9", h, func(s int, r string) { p.i("VMOVDQU", r, mem("DI", 64*s+32*h)) })
		}
		p.i("ADDQ", imm(ft.groupBytes()), "R9")
		p.i("ADDQ", "$512", "DI")
		p.i("ADDQ", "$128", "DX")
	}
	loop := p.newLabel("loop")
	if !ft.super() {
		p.place(loop)
		step := 32
		if ft.scale == scaleDM {
			step = 64
		}
		for v := range step / 16 {
			p.i("VCVTPH2PS", mem("R8", 16*v), y(0))
			p.i("VMOVUPS", y(0), mem("DX", 32*v))
		}
		p.i("ADDQ", imm(step), "R8")
		group()
		p.i("DECQ", "CX")
		p.i("JNZ", loop)
		p.i("VZEROUPPER")
		p.i("RET")
		return
	}
	p.i("SHRQ", "$3", "CX")
	p.place(loop)
	for h := range 2 {
		p.i("VCVTPH2PS", mem("R8", 16*h), y(11+h))
		if ft.scale == scaleK4 {
			p.i("VCVTPH2PS", mem("R8", 32+16*h), y(13+h))
		}
	}
	if ft.scale == scaleK4 {
		p.i("VBROADCASTSS", p.bits(0x80000000), y(0))
		p.i("VXORPS", y(0), y(13), y(13))
		p.i("VXORPS", y(0), y(14), y(14))
	}
	p.i("ADDQ", imm(kScales), "R8")
	p.i("MOVQ", "$8", "BX")
	inner := p.newLabel("inner")
	p.place(inner)
	for h := range 2 {
		if ft.scale == scaleK4 {
			p.i("VPMOVZXBD", mem("R8", 8*h), y(0))
			p.i("VPMOVZXBD", mem("R8", kMins-kScales+8*h), y(1))
		} else {
			p.i("VPMOVSXBD", mem("R8", 8*h), y(0))
			p.i("VPMOVSXBD", mem("R8", 16+8*h), y(1))
		}
		p.i("VCVTDQ2PS", y(0), y(0))
		p.i("VCVTDQ2PS", y(1), y(1))
		p.i("VMULPS", y(11+h), y(0), y(0))
		if ft.scale == scaleK4 {
			p.i("VMULPS", y(13+h), y(1), y(1))
		} else {
			p.i("VMULPS", y(11+h), y(1), y(1))
		}
		p.i("VMOVUPS", y(0), mem("DX", 32*h))
		p.i("VMOVUPS", y(1), mem("DX", 64+32*h))
	}
	if ft.scale == scaleK4 {
		p.i("ADDQ", "$16", "R8")
	} else {
		p.i("ADDQ", "$32", "R8")
	}
	group()
	p.i("DECQ", "BX")
	p.i("JNZ", inner)
	if ft.scale == scaleK4 {
		p.i("ADDQ", "$128", "R8")
	}
	p.i("ADDQ", imm(8*ft.groupBytes()), "R8")
	p.i("ADDQ", imm(kHeader), "R9")
	p.i("DECQ", "CX")
	p.i("JNZ", loop)
	p.i("VZEROUPPER")
	p.i("RET")
}

// gemm256 multiplies an unpacked tile with a panel of w columns: 8 rows and up to 6
// columns at a time. Where sums must go to 32 bits within a group that takes more
// registers, and columns are 4 at a time.
func gemm256(f *file, k kind256, w int) {
	p := f.fn(fmt.Sprintf("gemm%sx%d_256", k.name, w),
		fmt.Sprintf("multiplies an unpacked tile with a panel of %d columns.", w),
		"dst *float32, stride int, cols int, wq *byte, scales *float32, x *byte, groups int, shift int, add int")
	limit := flush(k.bits)
	block := 4
	if limit == 8 && w%6 == 0 {
		block = 6
	}
	facc := func(c int) string { return y(c) }
	i16 := func(c int) string { return y(block + c) }
	i32 := func(c int) string { return y(2*block + c) }
	wr, t, ones := y(13), y(14), y(15)
	if limit == 8 {
		i32 = i16 // turned in place at the end of a group
	}
	wabs := y(4) // Sign has no 16-bit sums, so their registers are free
	p.i("VPBROADCASTD", p.bits(0x00010001), ones)
	for half := range 2 {
		for c0 := 0; c0 < w; c0 += block {
			next := p.newLabel("next")
			if c0 > 0 {
				p.load("cols", "DX")
				p.i("CMPQ", "DX", imm(c0))
				p.i("JLE", next)
			}
			p.load("wq", "R8")
			p.load("scales", "R9")
			p.load("x", "SI")
			p.load("groups", "CX")
			for c := range block {
				p.i("VPXOR", facc(c), facc(c), facc(c))
			}
			loop := p.newLabel("loop")
			p.place(loop)
			scale := func(hi int) {
				for c := range block {
					if k.shift > 0 {
						if hi == 1 {
							p.i("VPBROADCASTD", mem("SI", 40*w+4*(c0+c)), t)
							p.i("VPBROADCASTD", mem("SI", 44*w+4*(c0+c)), wr)
							p.i("VPSUBD", wr, t, t)
						} else if k.scale == "Half" {
							p.i("VPBROADCASTD", mem("SI", 44*w+4*(c0+c)), t)
						} else {
							p.i("VPBROADCASTD", mem("SI", 40*w+4*(c0+c)), t)
						}
						p.i("VPSLLD", imm(k.shift), t, t)
						p.i("VPADDD", t, i32(c), i32(c))
					}
					p.i("VCVTDQ2PS", i32(c), i32(c))
					p.i("VBROADCASTSS", mem("SI", 32*w+4*(c0+c)), t)
					p.i("VMULPS", mem("R9", 64*hi+32*half), t, t)
					p.i("VFMADD231PS", i32(c), t, facc(c))
					if k.scale == "Min" {
						p.i("VBROADCASTSS", mem("SI", 36*w+4*(c0+c)), t)
						p.i("VFMADD231PS", mem("R9", 64+32*half), t, facc(c))
					}
				}
			}
			n16, n32 := 0, 0
			for s := range 8 {
				p.i("VMOVDQU", mem("R8", 64*s+32*half), wr)
				weights := wr
				if k.bits == 8 {
					p.i("VPABSB", wr, wabs)
					weights = wabs
				}
				for c := range block {
					at := mem("SI", 4*w*s+4*(c0+c))
					p.i("VPBROADCASTD", at, t)
					if k.bits == 8 {
						p.i("VPSIGNB", wr, t, t)
					}
					switch {
					case limit == 1:
						p.i("VPMADDUBSW", t, weights, t)
						if n32 == 0 {
							p.i("VPMADDWD", ones, t, i32(c))
						} else {
							p.i("VPMADDWD", ones, t, t)
							p.i("VPADDD", t, i32(c), i32(c))
						}
					case n16 == 0:
						p.i("VPMADDUBSW", t, weights, i16(c))
					default:
						p.i("VPMADDUBSW", t, weights, t)
						p.i("VPADDW", t, i16(c), i16(c))
					}
				}
				n16++
				if n16 == limit {
					for c := range block {
						switch {
						case limit == 1:
						case n32 == 0:
							p.i("VPMADDWD", ones, i16(c), i32(c))
						default:
							p.i("VPMADDWD", ones, i16(c), i16(c))
							p.i("VPADDD", i16(c), i32(c), i32(c))
						}
					}
					n16 = 0
					n32++
				}
				if k.scale == "Half" && s == 3 {
					scale(0)
					n32 = 0
				}
			}
			if k.scale == "Half" {
				scale(1)
			} else {
				scale(0)
			}
			p.i("ADDQ", imm(recordBytes*w), "SI")
			p.i("ADDQ", "$512", "R8")
			p.i("ADDQ", "$128", "R9")
			p.i("DECQ", "CX")
			p.i("JNZ", loop)
			store256(p, block, c0, half, next)
			p.place(next)
		}
	}
	p.i("VZEROUPPER")
	p.i("RET")
}

// store256 writes the sums of 8 rows for the columns c0.. of a panel and goes to next.
func store256(p *fn, block, c0, half int, next string) {
	plain := p.newLabel("plain")
	p.load("dst", "BX")
	p.load("stride", "R10")
	p.load("cols", "DX")
	if c0 > 0 {
		p.i("IMUL3Q", imm(c0), "R10", "AX")
		p.i("ADDQ", "AX", "BX")
	}
	p.load("add", "AX")
	p.i("TESTQ", "AX", "AX")
	p.i("JZ", plain)
	for pass := range 2 {
		for c := range block {
			if pass == 0 {
				p.i("VADDPS", mem("BX", 32*half), y(c), y(c))
			}
			p.i("VMOVUPS", y(c), mem("BX", 32*half))
			if c+1 < block {
				p.i("CMPQ", "DX", imm(c0+c+1))
				p.i("JLE", next)
				p.i("ADDQ", "R10", "BX")
			}
		}
		if pass == 0 {
			p.i("JMP", next)
			p.place(plain)
		}
	}
}
