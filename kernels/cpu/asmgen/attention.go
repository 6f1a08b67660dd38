package main

import "fmt"

// Widths of the attention kernels: query columns that share one pass over a page.
var attnWidths = map[int][]int{16: {1, 2, 4, 6, 8, 12}, 8: {1, 2, 4, 6}}

// scoreRow is the distance in bytes of two rows of scores: 128 positions.
const scoreRow = 512

// aheadList is the distance in bytes from the list of pages that a kernel works on
// to a list of as many pages that will be needed next. The kernel prefetches them as
// it goes: pages are 4 KiB or less, too short for the processor's own prefetching.
const aheadList = 64

// attnScore computes the scores of w query columns against pages of keys. A page
// of keys is [dim][16] f16; queries are [dim][w] float32; row c of scores starts
// at dst + c*scoreRow.
func attnScore(f *file, v vector, w int) {
	p := f.fn(fmt.Sprintf("attnScore%d_%s", w, v.tag),
		fmt.Sprintf("computes the scores of %d columns of queries against pages of keys; dim is a multiple of 4.", w),
		"dst *float32, q *float32, pages **byte, n int, dim int")
	parts := 16 / v.lanes // registers that hold 16 positions
	sets := 1             // chains a column is split into, against latency
	for w*parts*sets < 8 && sets < 4 {
		sets *= 2
	}
	acc := func(set, c, part int) int { return (set*w+c)*parts + part }
	k := func(part int) int { return w*parts*sets + part }
	t := w*parts*sets + parts
	p.load("dst", "DI")
	p.load("q", "R8")
	p.load("pages", "R9")
	p.load("n", "R10")
	p.load("dim", "R11")
	page, loop := p.newLabel("page"), p.newLabel("loop")
	p.place(page)
	p.i("MOVQ", mem("R9", 0), "DX")
	p.i("MOVQ", mem("R9", aheadList), "BX")
	p.i("MOVQ", "R8", "SI")
	p.i("MOVQ", "R11", "CX")
	for a := range w * parts * sets {
		v.clear(p, a)
	}
	p.place(loop)
	p.i("PREFETCHT0", mem("BX", 0))
	p.i("PREFETCHT0", mem("BX", 64))
	p.i("ADDQ", "$128", "BX")
	for d := range 4 {
		set := d % sets
		var ks []int
		for part := range parts {
			p.i("VCVTPH2PS", mem("DX", 32*d+2*v.lanes*part), v.r(k(part)))
			ks = append(ks, k(part))
		}
		for c := range w {
			var accs []int
			for part := range parts {
				accs = append(accs, acc(set, c, part))
			}
			v.fma(p, mem("SI", 4*(w*d+c)), ks, accs, t)
		}
	}
	p.i("ADDQ", "$128", "DX")
	p.i("ADDQ", imm(16*w), "SI")
	p.i("SUBQ", "$4", "CX")
	p.i("JNZ", loop)
	for c := range w {
		for part := range parts {
			for s := sets / 2; s > 0; s /= 2 {
				for set := range s {
					p.i("VADDPS", v.r(acc(set+s, c, part)), v.r(acc(set, c, part)), v.r(acc(set, c, part)))
				}
			}
			p.i("VMOVUPS", v.r(acc(0, c, part)), mem("DI", scoreRow*c+v.bytes()*part))
		}
	}
	p.i("ADDQ", "$64", "DI")
	p.i("ADDQ", "$8", "R9")
	p.i("DECQ", "R10")
	p.i("JNZ", page)
	p.i("VZEROUPPER")
	p.i("RET")
}

// attnValue adds w columns of weighted values to their sums. A page of values is
// [16][dim] f16, dim a multiple of 16; row c of the sums starts at acc + c*accRow
// bytes and is first multiplied by factor[4*c] (the third field of a softmax state
// of four).
func attnValue(f *file, v vector, w int) {
	p := f.fn(fmt.Sprintf("attnValue%d_%s", w, v.tag),
		fmt.Sprintf("adds n positions of values, weighted for %d columns, to sums that shrink first.", w),
		"acc *float32, accRow int, factor *float32, s *float32, pages **byte, n int, dim int")
	spare := v.regs - 1
	nv := 1 // registers of a column in one pass
	for _, k := range []int{2, 4} {
		if w*k+k <= spare && k*v.lanes <= 64 {
			nv = k
		}
	}
	p.load("acc", "DI")
	p.load("accRow", "R10")
	p.load("factor", "R11")
	p.load("dim", "R12")
	p.i("XORQ", "R13", "R13") // byte offset of the pass within a row of values
	pass := func(nv int, next string) {
		top, page, pos := p.newLabel("pass"), p.newLabel("page"), p.newLabel("pos")
		a := func(c, k int) int { return c*nv + k }
		vr := func(k int) int { return w*nv + k }
		t := w*nv + nv
		p.place(top)
		p.i("CMPQ", "R12", imm(nv*v.lanes))
		p.i("JLT", next)
		p.i("MOVQ", "DI", "BX")
		for c := range w {
			p.i("VBROADCASTSS", mem("R11", 16*c+8), v.r(t))
			for k := range nv {
				p.i("VMULPS", mem("BX", v.bytes()*k), v.r(t), v.r(a(c, k)))
			}
			if c+1 < w {
				p.i("ADDQ", "R10", "BX")
			}
		}
		p.load("s", "SI")
		p.load("pages", "R9")
		p.load("n", "R8")
		p.load("dim", "DX")
		p.i("ADDQ", "DX", "DX")
		p.place(page)
		p.i("MOVQ", mem("R9", 0), "AX")
		p.i("ADDQ", "R13", "AX")
		// A pass reads a strip of each row of the page; ahead it takes as many bytes in
		// one piece.
		p.i("MOVQ", "R13", "BX")
		p.i("SHLQ", "$4", "BX")
		p.i("ADDQ", mem("R9", aheadList), "BX")
		p.i("MOVQ", "$16", "CX")
		p.i("CMPQ", "R8", "CX")
		p.i("CMOVQLT", "R8", "CX")
		p.i("SUBQ", "CX", "R8")
		p.place(pos)
		var vs []int
		for k := range nv {
			p.i("VCVTPH2PS", mem("AX", 2*v.lanes*k), v.r(vr(k)))
			vs = append(vs, vr(k))
		}
		for c := range w {
			var accs []int
			for k := range nv {
				accs = append(accs, a(c, k))
			}
			v.fma(p, mem("SI", scoreRow*c), vs, accs, t)
		}
		for l := 0; l < nv*v.lanes*2; l += 64 {
			p.i("PREFETCHT0", mem("BX", l))
		}
		p.i("ADDQ", imm(nv*v.lanes*2), "BX")
		p.i("ADDQ", "DX", "AX")
		p.i("ADDQ", "$4", "SI")
		p.i("DECQ", "CX")
		p.i("JNZ", pos)
		p.i("ADDQ", "$8", "R9")
		p.i("TESTQ", "R8", "R8")
		p.i("JNZ", page)
		p.i("MOVQ", "DI", "BX")
		for c := range w {
			for k := range nv {
				p.i("VMOVUPS", v.r(a(c, k)), mem("BX", v.bytes()*k))
			}
			if c+1 < w {
				p.i("ADDQ", "R10", "BX")
			}
		}
		p.i("ADDQ", imm(nv*v.bytes()), "DI")
		p.i("ADDQ", imm(nv*v.lanes*2), "R13")
		p.i("SUBQ", imm(nv*v.lanes), "R12")
		p.i("JMP", top)
	}
	end, rest := p.newLabel("end"), p.newLabel("rest")
	if nv > 1 {
		pass(nv, rest)
		p.place(rest)
	}
	pass(1, end)
	p.place(end)
	p.i("VZEROUPPER")
	p.i("RET")
}
