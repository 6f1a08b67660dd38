package ref

import (
	"math"

	"atoll/kernels"
)

// RMSNorm implements the same method as documented on kernels.Backend.
func (b *Backend) RMSNorm(dst, x, gain kernels.Buffer, n int, eps float32) {
	d, xs, g := dst.(buffer), x.(buffer), gain.(buffer)
	w := len(g)
	check(w > 0 && len(d) >= n*w && len(xs) >= n*w, "norm of %d rows of %d: %d to %d values", n, w, len(xs), len(d))
	for t := range n {
		row, out := xs[t*w:(t+1)*w], d[t*w:(t+1)*w]
		var sum float64
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		f := float32(1 / math.Sqrt(sum/float64(w)+float64(eps)))
		for i, v := range row {
			out[i] = v * f * g[i]
		}
	}
}

// Rope implements the same method as documented on kernels.Backend.
func (b *Backend) Rope(x, cos, sin kernels.Buffer, n, heads, headDim, dims int, kind kernels.RopeKind) {
	xs, c, s := x.(buffer), cos.(buffer), sin.(buffer)
	half := dims / 2
	check(dims%2 == 0 && dims <= headDim && len(xs) >= n*heads*headDim && len(c) >= n*half && len(s) >= n*half,
		"rope of %d x %d x %d, %d dimensions: %d values, tables of %d and %d", n, heads, headDim, dims, len(xs), len(c), len(s))
	step, gap := 1, half // RopeNeoX: i and i+half
	if kind == kernels.RopeNorm {
		step, gap = 2, 1 // 2i and 2i+1
	}
	for t := range n {
		ct, st := c[t*half:(t+1)*half], s[t*half:(t+1)*half]
		for h := range heads {
			v := xs[(t*heads+h)*headDim:][:headDim]
			for i := range half {
				p := i * step
				a, e := v[p], v[p+gap]
				v[p] = a*ct[i] - e*st[i]
				v[p+gap] = a*st[i] + e*ct[i]
			}
		}
	}
}

// SwiGLU implements the same method as documented on kernels.Backend.
func (b *Backend) SwiGLU(dst, gate, up kernels.Buffer, n int) {
	d, g, u := dst.(buffer), gate.(buffer), up.(buffer)
	check(len(d) >= n && len(g) >= n && len(u) >= n, "swiglu of %d values: %d, %d to %d", n, len(g), len(u), len(d))
	const chunk = 4096
	b.share((n+chunk-1)/chunk, func(_, c int) {
		for i := c * chunk; i < min((c+1)*chunk, n); i++ {
			v := g[i]
			d[i] = v / float32(1+math.Exp(-float64(v))) * u[i]
		}
	})
}

// Add implements the same method as documented on kernels.Backend.
func (b *Backend) Add(dst, x kernels.Buffer, n int) {
	d, xs := dst.(buffer), x.(buffer)
	check(len(d) >= n && len(xs) >= n, "add of %d values: %d to %d", n, len(xs), len(d))
	for i, v := range xs[:n] {
		d[i] += v
	}
}
