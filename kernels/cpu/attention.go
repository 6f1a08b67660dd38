//go:build amd64 && !purego

package cpu

import (
	"math"

	"atoll/kernels"
)

const (
	attnBlock  = 128 // positions that scores are computed for at once; the kernels know it as scoreRow
	attnPages  = attnBlock / kernels.KVPage
	splitLen   = 256 // positions that a part of a split past has at least
	maxColumns = 12
)

// attnScratch is what a worker needs for one block of columns.
type attnScratch struct {
	q      []float32 // [dim][width], scaled
	scores []float32 // [width][attnBlock]
	sums   []float32 // [width][padded dim]
	state  []float32 // [width][4]: maximum, sum, factor, unused

	// Pages of the block of positions at work, and behind them those that the kernel
	// prefetches: values while it reads keys, the next keys while it reads values.
	keys   [2 * attnPages]*byte
	values [2 * attnPages]*byte
}

// attention is one Attend while it runs.
//
// The queries of the heads that share a key/value head are columns: column
// t*group+j of a head is query j of the group for token t. A unit of work is a
// block of columns of one key/value head and, where units are few and the past is
// long, one part of the positions; parts are merged at the end.
type attention struct {
	b      *backend
	a      kernels.Attention
	c      *kv
	dst, q buffer
	n      int
	group  int
	width  int // columns of a block
	blocks int // of a head
	parts  int
	sums   []float32 // of parts: [unit][part][width][dim]
	states []float32 // [unit][part][width][4]
}

// Attend implements the same method as documented on kernels.Backend.
func (b *backend) Attend(dst, q kernels.Buffer, cache kernels.KV, n int, a kernels.Attention) {
	c, d, qs := cache.(*kv), dst.(buffer), q.(buffer)
	s := c.shape
	check(a.KVHeads == s.KVHeads && a.HeadDim == s.HeadDim && a.Heads > 0 && a.Heads%a.KVHeads == 0,
		"attention of %d/%d heads of %d values to a cache %+v", a.Heads, a.KVHeads, a.HeadDim, s)
	size := n * a.Heads * a.HeadDim
	check(n >= 0 && a.Pos >= 0 && len(d) >= size && len(qs) >= size, "attention of %d x %d x %d", n, a.Heads, a.HeadDim)
	if n == 0 {
		return
	}
	c.checkPages(a.Layer, a.Pages, a.Pos+n)
	t := &attention{b: b, a: a, c: c, dst: d, q: qs, n: n, group: a.Heads / a.KVHeads, parts: 1}
	cols := n * t.group
	t.width = b.tier.widths[len(b.tier.widths)-1]
	for _, w := range b.tier.widths {
		if w >= cols {
			t.width = w
			break
		}
	}
	t.blocks = (cols + t.width - 1) / t.width
	units := a.KVHeads * t.blocks
	if threads := b.pool.n; threads > 1 && units < 4*threads && units%threads != 0 {
		t.parts = max(1, min(2*threads, (a.Pos+n)/splitLen))
	}
	if t.parts > 1 {
		t.sums = make([]float32, units*t.parts*t.width*a.HeadDim)
		t.states = make([]float32, units*t.parts*t.width*4)
	}
	b.share(units*t.parts, t.run)
	if t.parts > 1 && !b.stopped() {
		for u := range units {
			t.merge(u)
		}
	}
}

// run computes one part of one block.
func (t *attention) run(worker, item int) {
	unit, part := item/t.parts, item%t.parts
	head, first := unit/t.blocks, unit%t.blocks*t.width
	cols := min(t.width, t.n*t.group-first)
	s := &t.b.scratch[worker].attn
	t.load(s, head, first, cols)

	seen := t.a.Pos + (first+cols-1)/t.group + 1 // positions that the last column sees
	span := (seen/t.parts + attnBlock - 1) / attnBlock * attnBlock
	lo, hi := part*span, min((part+1)*span, seen)
	if part == t.parts-1 {
		hi = seen
	}
	dim := t.a.HeadDim
	score, value := t.b.tier.score[t.width], t.b.tier.value[t.width]
	for p := lo; p < hi; p += attnBlock {
		if t.b.stopped() {
			return
		}
		n := min(attnBlock, hi-p)
		np := (n + kernels.KVPage - 1) / kernels.KVPage
		for i := range np {
			page := t.a.Pages[p/kernels.KVPage+i]
			s.keys[i] = t.c.keyPage(t.a.Layer, head, page)
			s.values[i] = t.c.valuePage(t.a.Layer, head, page)
			s.keys[attnPages+i] = s.values[i]
			if next := p/kernels.KVPage + attnPages + i; next*kernels.KVPage < hi {
				page = t.a.Pages[next]
			}
			s.values[attnPages+i] = t.c.keyPage(t.a.Layer, head, page)
		}
		score(&s.scores[0], &s.q[0], &s.keys[0], np, dim)
		for c := range cols {
			row := s.scores[c*attnBlock : (c+1)*attnBlock]
			m := min(n, t.a.Pos+(first+c)/t.group+1-p)
			if m <= 0 {
				clear(row)
				s.state[4*c+2] = 1
				continue
			}
			softmax(&row[0], m, &s.state[4*c])
			clear(row[min(attnBlock, (m+7)&^7):])
		}
		value(&s.sums[0], 4*t.c.dim, &s.state[0], &s.scores[0], &s.values[0], n, t.c.dim)
	}

	if t.parts > 1 {
		at := item * t.width
		copy(t.states[at*4:], s.state[:cols*4])
		for c := range cols {
			copy(t.sums[(at+c)*dim:(at+c+1)*dim], s.sums[c*t.c.dim:])
		}
		return
	}
	for c := range cols {
		out := t.out(head, first+c)
		inv := 1 / s.state[4*c+1]
		for i, v := range s.sums[c*t.c.dim : c*t.c.dim+dim] {
			out[i] = v * inv
		}
	}
}

// load puts the scaled queries of a block into the scratch, transposed, and resets
// the sums.
func (t *attention) load(s *attnScratch, head, first, cols int) {
	dim, w := t.a.HeadDim, t.width
	if len(s.q) < dim*w || len(s.sums) < w*t.c.dim {
		s.q = aligned(dim * maxColumns)
		s.sums = aligned(maxColumns * t.c.dim)
		s.scores = aligned(maxColumns * attnBlock)
		s.state = aligned(maxColumns*4 + 4)
	}
	clear(s.sums)
	if cols < w {
		clear(s.q)
	}
	for c := range w {
		s.state[4*c] = float32(math.Inf(-1))
		s.state[4*c+1] = 0
		s.state[4*c+2] = 1
	}
	for c := range cols {
		tok, j := (first+c)/t.group, (first+c)%t.group
		src := t.q[(tok*t.a.Heads+head*t.group+j)*dim:][:dim]
		for d, v := range src {
			s.q[d*w+c] = v * t.a.Scale
		}
	}
}

// out returns the output of a column.
func (t *attention) out(head, col int) buffer {
	at := ((col/t.group)*t.a.Heads + head*t.group + col%t.group) * t.a.HeadDim
	return t.dst[at : at+t.a.HeadDim]
}

// merge adds up the parts of a unit.
func (t *attention) merge(unit int) {
	head, first := unit/t.blocks, unit%t.blocks*t.width
	cols := min(t.width, t.n*t.group-first)
	dim := t.a.HeadDim
	for c := range cols {
		top := float32(math.Inf(-1))
		for part := range t.parts {
			top = max(top, t.states[((unit*t.parts+part)*t.width+c)*4])
		}
		out := t.out(head, first+c)
		clear(out)
		var total float32
		for part := range t.parts {
			at := (unit*t.parts+part)*t.width + c
			if t.states[at*4+1] == 0 {
				continue // a part that this column does not see
			}
			f := float32(math.Exp(float64(t.states[at*4] - top)))
			total += f * t.states[at*4+1]
			for i, v := range t.sums[at*dim : (at+1)*dim] {
				out[i] += f * v
			}
		}
		for i := range out {
			out[i] /= total
		}
	}
}
