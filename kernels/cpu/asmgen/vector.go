package main

// vector is the register set of a tier, for kernels that both tiers share the shape of.
type vector struct {
	tag   string // suffix of the function names
	lanes int    // float32 values in a register
	regs  int
	r     func(int) string // register n
}

var (
	vec512 = vector{"512", 16, 32, z}
	vec256 = vector{"256", 8, 16, y}
)

func (v vector) bytes() int { return 4 * v.lanes }

func (v vector) clear(p *fn, n int) {
	if v.lanes == 16 {
		p.i("VPXORD", z(n), z(n), z(n))
	} else {
		p.i("VPXOR", y(n), y(n), y(n))
	}
}

// fma adds, for each i, w[i] times the float32 at addr to acc[i]. t is free.
func (v vector) fma(p *fn, addr string, w, acc []int, t int) {
	if v.lanes == 16 {
		for i := range w {
			p.i("VFMADD231PS.BCST", addr, z(w[i]), z(acc[i]))
		}
		return
	}
	p.i("VBROADCASTSS", addr, y(t))
	for i := range w {
		p.i("VFMADD231PS", y(t), y(w[i]), y(acc[i]))
	}
}
