//go:build amd64 && !purego

package cpu

import (
	"atoll/kernels"
	"atoll/kernels/quant"
)

const (
	panelCols   = 12        // columns of a full panel
	directBytes = 256 << 10 // most weights in one call of a direct kernel
	unpackBytes = 448 << 10 // most unpacked weights that a worker holds, within its second cache
)

// panel is a run of columns of the quantised activations.
type panel struct {
	first, cols int // columns of the batch
	width       int // columns of the records
	off         int // of the first record in xq
}

// panels divides n columns. Up to 2*direct columns go by panels of direct columns,
// whose kernels need no unpacked tiles.
func panels(n, groups, direct int) []panel {
	var ps []panel
	off := 0
	most := panelCols
	if direct > 1 && n <= 2*direct {
		most = direct
	}
	for first := 0; first < n; {
		p := panel{first: first, cols: min(n-first, most), off: off}
		switch {
		case n == 1:
			p.width = 1
		case p.cols <= 4:
			p.width = 4
		case p.cols <= 8:
			p.width = 8
		default:
			p.width = 12
		}
		ps = append(ps, p)
		off += groups * recordBytes * p.width
		first += p.cols
	}
	return ps
}

// product is one MatMul of packed weights while it runs.
type product struct {
	b      *backend
	dst    []buffer
	w      []*weight
	units  []int // tiles of a unit of work, by weight
	panels []panel
	add    bool
}

// MatMul implements the same method as documented on kernels.Backend.
func (b *backend) MatMul(dst []kernels.Buffer, w []kernels.Weight, x kernels.Buffer, n int, add bool) {
	check(len(dst) == len(w) && len(w) > 0, "%d products of %d weights", len(dst), len(w))
	xs := x.(buffer)
	p := &product{b: b, add: add}
	cols := w[0].Cols()
	check(n >= 0 && len(xs) >= n*cols, "input of %d values for %d x %d", len(xs), n, cols)
	for i := range w {
		wi, d := w[i].(*weight), dst[i].(buffer)
		check(wi.cols == cols, "weights of %d and %d columns in one product", cols, wi.cols)
		check(len(d) >= n*wi.rows, "output of %d values for %d x %d", len(d), n, wi.rows)
		if n == 0 || b.stopped() {
			continue
		}
		if !wi.packed {
			b.denseProduct(d, wi, xs, n, add)
			continue
		}
		p.dst, p.w = append(p.dst, d), append(p.w, wi)
	}
	if len(p.w) == 0 {
		return
	}
	p.panels = panels(n, cols/groupLen, b.tier.directCols)
	b.quantize(p.panels, xs, cols)
	total := 0
	for _, wi := range p.w {
		u := p.unit(wi)
		p.units = append(p.units, u)
		total += (wi.tiles + u - 1) / u
	}
	b.share(total, p.run)
}

// direct reports whether packed tiles are multiplied without unpacking.
func (p *product) direct(f quant.Format) bool {
	return p.b.tier.direct[f][p.panels[0].width] != nil
}

// unit returns how many tiles of a weight are worked on at once.
func (p *product) unit(w *weight) int {
	limit := directBytes / w.tileBytes
	if !p.direct(w.format) {
		limit = unpackBytes / (w.groups * (512 + 128))
	}
	// Enough units that workers finish together.
	return max(1, min(limit, w.tiles/(4*p.b.pool.n)))
}

// quantize rounds the activations to records.
func (b *backend) quantize(ps []panel, x buffer, cols int) {
	groups := cols / groupLen
	last := ps[len(ps)-1]
	if size := last.off + groups*recordBytes*last.width; len(b.xq) < size {
		b.xq = alignedBytes(size)
	}
	if len(b.zeros) < cols {
		b.zeros = aligned(cols)
	}
	one := func(p panel) {
		for c := range p.width {
			src := b.zeros
			if c < p.cols {
				src = x[(p.first+c)*cols:]
			}
			quantize(&b.xq[p.off+4*c], &src[0], groups, 4*p.width)
		}
	}
	if len(ps) == 1 && ps[0].width < 8 {
		one(ps[0])
		return
	}
	b.share(len(ps), func(_, i int) { one(ps[i]) })
}

// run computes one unit of work.
func (p *product) run(worker, item int) {
	for i, w := range p.w {
		u := p.units[i]
		n := (w.tiles + u - 1) / u
		if item >= n {
			item -= n
			continue
		}
		first := item * u
		last := min(first+u, w.tiles)
		add := p.bias(w, p.dst[i], first, last)
		if p.direct(w.format) {
			p.runDirect(worker, w, p.dst[i], first, last, add)
		} else {
			p.runUnpacked(worker, w, p.dst[i], first, last, add)
		}
		return
	}
}

// bias puts the bias of the rows of some tiles into the output, and returns 1 if the
// product is then to be added.
func (p *product) bias(w *weight, d buffer, first, last int) int {
	if w.bias != nil {
		lo, hi := first*tileRows, min(last*tileRows, w.rows)
		n := p.columns()
		for c := range n {
			out := d[c*w.rows+lo : c*w.rows+hi]
			if !p.add {
				copy(out, w.bias[lo:hi])
				continue
			}
			for r, v := range w.bias[lo:hi] {
				out[r] += v
			}
		}
		return 1
	}
	if p.add {
		return 1
	}
	return 0
}

func (p *product) columns() int {
	last := p.panels[len(p.panels)-1]
	return last.first + last.cols
}

func (p *product) runDirect(worker int, w *weight, d buffer, first, last, add int) {
	for _, pl := range p.panels {
		p.runDirectPanel(worker, w, d, pl, first, last, add)
	}
}

func (p *product) runDirectPanel(worker int, w *weight, d buffer, pl panel, first, last, add int) {
	kernel := p.b.tier.direct[w.format][pl.width]
	x := &p.b.xq[pl.off]
	head := w.lay.head(w.groups)
	if full := min(last, w.rows/tileRows); first < full {
		kernel(&d[pl.first*w.rows+first*tileRows], 4*w.rows, pl.cols, &w.data[first*w.tileBytes], head, w.tileBytes, full-first, x, w.groups, add)
		first = full
	}
	if first < last {
		out := p.b.scratch[worker].out
		kernel(&out[0], 4*tileRows, pl.cols, &w.data[first*w.tileBytes], head, w.tileBytes, 1, x, w.groups, 0)
		p.partial(w, d, first, pl, out, add)
	}
}

// partial stores the sums of a tile that is not full.
func (p *product) partial(w *weight, d buffer, tile int, pl panel, out []float32, add int) {
	lo := tile * tileRows
	for c := range pl.cols {
		o := d[(pl.first+c)*w.rows+lo : (pl.first+c+1)*w.rows]
		for r := range o {
			v := out[c*tileRows+r]
			if add != 0 {
				v += o[r]
			}
			o[r] = v
		}
	}
}

func (p *product) runUnpacked(worker int, w *weight, d buffer, first, last, add int) {
	s := &p.b.scratch[worker]
	tq, ts := w.groups*512, w.groups*32
	if n := (last - first) * tq; len(s.wq) < n {
		s.wq = alignedBytes(n)
	}
	if n := (last - first) * ts; len(s.scales) < n {
		s.scales = aligned(n)
	}
	unpack := p.b.tier.unpack[w.format]
	head := w.lay.head(w.groups)
	for t := first; t < last; t++ {
		unpack(&s.wq[(t-first)*tq], &s.scales[(t-first)*ts], &w.data[t*w.tileBytes], head, w.groups)
	}
	kernels := p.b.tier.gemm[w.format]
	for _, pl := range p.panels {
		if p.b.stopped() {
			return
		}
		kernel := kernels[pl.width]
		x := &p.b.xq[pl.off]
		for t := first; t < last; t++ {
			wq, sc := &s.wq[(t-first)*tq], &s.scales[(t-first)*ts]
			if (t+1)*tileRows <= w.rows {
				kernel(&d[pl.first*w.rows+t*tileRows], 4*w.rows, pl.cols, wq, sc, x, w.groups, w.lay.shift, add)
				continue
			}
			kernel(&s.out[0], 4*tileRows, pl.cols, wq, sc, x, w.groups, w.lay.shift, 0)
			p.partial(w, d, t, pl, s.out, add)
		}
	}
}

const (
	denseRows  = 32 // rows of floats that a worker takes at once
	denseBlock = 4  // rows that a kernel takes at once
)

// denseProduct multiplies float rows with unrounded activations.
func (b *backend) denseProduct(d buffer, w *weight, x buffer, n int, add bool) {
	ks := b.tier.dense[w.format]
	wide := b.tier.denseCols
	block, rows, row := ks[[2]int{denseBlock, wide}], ks[[2]int{denseBlock, 1}], ks[[2]int{1, 1}]
	size := w.format.RowBytes(w.cols)
	whole := w.cols / b.tier.lanes * b.tier.lanes
	b.share((w.rows+denseRows-1)/denseRows, func(_, item int) {
		var sums [16]float32
		// one multiplies nr rows with nc columns.
		one := func(k denseKernel, r, nr, c, nc int) {
			k(&sums[0], &w.data[r*size], size, &x[c*w.cols], 4*w.cols, whole)
			for i := range nr * nc {
				rr, cc := r+i%nr, c+i/nr
				v := sums[i] + tail(w, rr, x[cc*w.cols:], whole)
				if w.bias != nil {
					v += w.bias[rr]
				}
				o := &d[cc*w.rows+rr]
				if add {
					v += *o
				}
				*o = v
			}
		}
		lo, hi := item*denseRows, min((item+1)*denseRows, w.rows)
		for c := 0; c < n && !b.stopped(); {
			nc := min(wide, n-c)
			for r := lo; r < hi; {
				switch {
				case hi-r >= denseBlock && nc == wide:
					one(block, r, denseBlock, c, nc)
					r += denseBlock
				case hi-r >= denseBlock:
					for cc := c; cc < c+nc; cc++ {
						one(rows, r, denseBlock, cc, 1)
					}
					r += denseBlock
				default:
					for cc := c; cc < c+nc; cc++ {
						one(row, r, 1, cc, 1)
					}
					r++
				}
			}
			c += nc
		}
	})
}

// tail sums the columns from k on, fewer than a register holds.
func tail(w *weight, row int, x buffer, k int) float32 {
	if k == w.cols {
		return 0
	}
	var v [16]float32
	n := w.cols - k
	size := w.format.BlockBytes()
	at := row*w.format.RowBytes(w.cols) + k*size
	quant.Dequantize(w.format, v[:n], w.data[at:at+n*size])
	var sum float32
	for i := range n {
		sum += v[i] * x[k+i]
	}
	return sum
}
