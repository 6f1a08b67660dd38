package kerneltest

import (
	"fmt"
	"testing"

	"atoll/kernels"
)

// Bench times the shapes of a 1.5B model with two threads: products for one token
// (bytes of weights per second) and for a batch (as many products per second), and
// attention over a long past.
func Bench(b *testing.B, open Open) {
	be, err := open(2)
	if err != nil {
		b.Skip(err)
	}
	defer be.Close()
	s := &suite{b: be}
	const rows, cols = 8960, 1536
	for _, f := range Formats {
		w := s.weight(b, be, f, rows, cols, source(1), nil)
		for _, n := range []int{1, 4, 256} {
			b.Run(fmt.Sprintf("MatMul/%v/n=%d", f, n), func(b *testing.B) {
				x := load(b, be, normals(source(2), n*cols))
				out := load(b, be, make([]float32, n*rows))
				b.SetBytes(int64(rows * f.RowBytes(cols)))
				for b.Loop() {
					be.MatMul([]kernels.Buffer{out}, []kernels.Weight{w}, x, n, false)
				}
				b.ReportMetric(float64(rows)*cols*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			})
		}
	}
	for _, c := range []struct{ pos, n int }{{4000, 1}, {0, 256}, {3840, 256}} {
		b.Run(fmt.Sprintf("Attend/pos=%d/n=%d", c.pos, c.n), func(b *testing.B) {
			kv, pages := filled(b, be, kernels.KVShape{Layers: 1, KVHeads: 2, HeadDim: 128, Pages: 257}, c.pos+c.n, 1)
			q := load(b, be, normals(source(3), c.n*12*128))
			out := load(b, be, make([]float32, c.n*12*128))
			for b.Loop() {
				be.Attend(out, q, kv, c.n, kernels.Attention{Heads: 12, KVHeads: 2, HeadDim: 128, Scale: 0.088, Pages: pages, Pos: c.pos})
			}
		})
	}
}
