//go:build amd64 && !purego

package cpu

import (
	"math"

	"atoll/kernels"
)

// Operations on fewer values than this are not worth waking a worker for.
const shareValues = 16 << 10

// rows calls f for n rows of d values, on all workers if that is a lot.
func (b *backend) rows(n, d int, f func(row int)) {
	if n*d < shareValues {
		for i := 0; i < n && !b.stopped(); i++ {
			f(i)
		}
		return
	}
	const step = 4
	b.share((n+step-1)/step, func(_, item int) {
		for i := item * step; i < min(n, (item+1)*step); i++ {
			f(i)
		}
	})
}

// pieces calls f for the parts [lo, hi) of n values, on all workers if that is a lot.
func (b *backend) pieces(n int, f func(lo, hi int)) {
	const step = 8 << 10
	if n < shareValues {
		if n > 0 && !b.stopped() {
			f(0, n)
		}
		return
	}
	b.share((n+step-1)/step, func(_, item int) { f(item*step, min(n, (item+1)*step)) })
}

// RMSNorm implements the same method as documented on kernels.Backend.
func (b *backend) RMSNorm(dst, x, gain kernels.Buffer, n int, eps float32) {
	d, s, g := dst.(buffer), x.(buffer), gain.(buffer)
	w := len(g)
	check(w > 0 && n >= 0 && len(d) >= n*w && len(s) >= n*w, "norm of %d x %d: %d to %d values", n, w, len(s), len(d))
	b.rows(n, w, func(i int) {
		row, out := s[i*w:(i+1)*w], d[i*w:(i+1)*w]
		whole := w &^ 7
		var sum float32
		sumSquares(&sum, &row[0], whole)
		for _, v := range row[whole:] {
			sum += v * v
		}
		scale := float32(1 / math.Sqrt(float64(sum)/float64(w)+float64(eps)))
		scaleGain(&out[0], &row[0], &g[0], &scale, whole)
		for k := whole; k < w; k++ {
			out[k] = row[k] * scale * g[k]
		}
	})
}

// Rope implements the same method as documented on kernels.Backend.
func (b *backend) Rope(x, cos, sin kernels.Buffer, n, heads, headDim, dims int, kind kernels.RopeKind) {
	s, co, si := x.(buffer), cos.(buffer), sin.(buffer)
	half := dims / 2
	check(dims%2 == 0 && dims > 0 && dims <= headDim && n >= 0 && len(s) >= n*heads*headDim && len(co) >= n*half && len(si) >= n*half,
		"rope of %d x %d x %d, %d rotated", n, heads, headDim, dims)
	b.rows(n, heads*headDim, func(i int) {
		c, sn := co[i*half:(i+1)*half], si[i*half:(i+1)*half]
		for h := range heads {
			head := s[(i*heads+h)*headDim:][:dims]
			if kind == kernels.RopeNeoX {
				whole := half &^ 7
				ropeNeoX(&head[0], &head[half], &c[0], &sn[0], whole)
				for k := whole; k < half; k++ {
					a, z := head[k], head[k+half]
					head[k], head[k+half] = a*c[k]-z*sn[k], a*sn[k]+z*c[k]
				}
				continue
			}
			whole := dims &^ 7
			ropeNorm(&head[0], &c[0], &sn[0], whole)
			for k := whole; k < dims; k += 2 {
				a, z := head[k], head[k+1]
				head[k], head[k+1] = a*c[k/2]-z*sn[k/2], a*sn[k/2]+z*c[k/2]
			}
		}
	})
}

// SwiGLU implements the same method as documented on kernels.Backend.
func (b *backend) SwiGLU(dst, gate, up kernels.Buffer, n int) {
	d, g, u := dst.(buffer), gate.(buffer), up.(buffer)
	check(n >= 0 && len(d) >= n && len(g) >= n && len(u) >= n, "swiglu of %d values", n)
	b.pieces(n, func(lo, hi int) {
		whole := lo + (hi-lo)&^7
		swiGLU(&d[lo], &g[lo], &u[lo], whole-lo)
		for i := whole; i < hi; i++ {
			d[i] = float32(float64(g[i])/(1+math.Exp(-float64(g[i])))) * u[i]
		}
	})
}

// Add implements the same method as documented on kernels.Backend.
func (b *backend) Add(dst, x kernels.Buffer, n int) {
	d, s := dst.(buffer), x.(buffer)
	check(n >= 0 && len(d) >= n && len(s) >= n, "add of %d values", n)
	b.pieces(n, func(lo, hi int) {
		whole := lo + (hi-lo)&^7
		addTo(&d[lo], &s[lo], whole-lo)
		for i := whole; i < hi; i++ {
			d[i] += s[i]
		}
	})
}
