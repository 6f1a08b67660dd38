package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"atoll/kernels"
	"atoll/kernels/quant"
)

// matrix returns random weights in the format.
func matrix(f quant.Format, rows, cols int, rng *rand.Rand, bias []float32) kernels.Matrix {
	x := normals(rng, rows*cols)
	data := make([]byte, rows*f.RowBytes(cols))
	quant.Quantize(f, data, x)
	return kernels.Matrix{Name: fmt.Sprintf("%v %dx%d", f, rows, cols), Format: f, Rows: rows, Cols: cols, Data: data, Bias: bias}
}

func (s *suite) weight(t testing.TB, b kernels.Backend, f quant.Format, rows, cols int, rng *rand.Rand, bias []float32) kernels.Weight {
	t.Helper()
	w, err := b.NewWeight(matrix(f, rows, cols, rng, bias))
	if err != nil {
		t.Fatal(err)
	}
	if w.Rows() != rows || w.Cols() != cols {
		t.Fatalf("weight of %d x %d, want %d x %d", w.Rows(), w.Cols(), rows, cols)
	}
	return w
}

// product compares m times x with the reference, weight by weight.
func (s *suite) product(t *testing.T, m kernels.Matrix, x []float32, n int, add bool) {
	t.Helper()
	got, want := s.both(t, func(b kernels.Backend) kernels.Buffer {
		w, err := b.NewWeight(m)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]float32, n*m.Rows)
		for i := range out {
			out[i] = float32(i%5) - 2
		}
		buf := load(t, b, out)
		b.MatMul([]kernels.Buffer{buf}, []kernels.Weight{w}, load(t, b, x), n, add)
		return buf
	})
	row := make([]float32, m.Cols)
	size := m.Format.RowBytes(m.Cols)
	for r := range m.Rows {
		quant.Dequantize(m.Format, row, m.Data[r*size:(r+1)*size])
		for tok := range n {
			sum := 3.0
			for k, w := range row {
				sum += math.Abs(float64(w) * float64(x[tok*m.Cols+k]))
			}
			g, w := float64(got[tok*m.Rows+r]), float64(want[tok*m.Rows+r])
			if !(math.Abs(g-w) <= matMulTolerance[m.Format]*sum) {
				t.Fatalf("%s, %d tokens, add %v: token %d row %d: %v, want %v (sum of magnitudes %.3g)", m.Name, n, add, tok, r, g, w, sum)
			}
		}
	}
}

func (s *suite) matMul(t *testing.T) {
	tokens := []int{1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 25, 31, 32, 33, 64}
	rows := []int{1, 7, 16, 17, 40, 130}
	cols := map[int][]int{1: {32, 64, 96, 256, 576, 896}, 32: {32, 64, 96, 256, 576, 896}, 256: {256, 512, 1536}}
	for _, f := range Formats {
		t.Run(f.String(), func(t *testing.T) {
			i := 0
			for _, c := range cols[f.BlockLen()] {
				for _, r := range rows {
					// A few token counts for each shape; over the shapes all come up.
					for range 4 {
						n := tokens[i%len(tokens)]
						i++
						rng := source(10, uint64(f), uint64(c), uint64(r), uint64(n))
						var bias []float32
						if i%3 == 0 {
							bias = normals(rng, r)
						}
						s.product(t, matrix(f, r, c, rng, bias), normals(rng, n*c), n, i%2 == 0)
					}
				}
			}
		})
	}
}

// matMulShared multiplies one input with weights of several formats, as a layer does
// for queries, keys and values.
func (s *suite) matMulShared(t *testing.T) {
	for _, n := range []int{1, 6, 40} {
		rng := source(11, uint64(n))
		ms := []kernels.Matrix{
			matrix(quant.Q4_K, 48, 512, rng, normals(rng, 48)), matrix(quant.Q6_K, 20, 512, rng, nil),
			matrix(quant.F16, 33, 512, rng, nil), matrix(quant.Q5_0, 100, 512, rng, normals(rng, 100)),
		}
		x := normals(rng, n*512)
		var got, want [][]float32
		for i, b := range []kernels.Backend{s.b, s.ref} {
			var dst []kernels.Buffer
			var ws []kernels.Weight
			for _, m := range ms {
				w, err := b.NewWeight(m)
				if err != nil {
					t.Fatal(err)
				}
				ws = append(ws, w)
				dst = append(dst, load(t, b, make([]float32, n*m.Rows)))
			}
			b.MatMul(dst, ws, load(t, b, x), n, false)
			for _, d := range dst {
				if i == 0 {
					got = append(got, fetch(t, b, d))
				} else {
					want = append(want, fetch(t, b, d))
				}
			}
		}
		for i := range ms {
			near(t, got[i], want[i], ms[i].Rows, tolerance)
		}
	}
}

// matMulExtremes uses the largest codes of each format against the largest
// activations of both signs, where narrow integer sums would overflow.
func (s *suite) matMulExtremes(t *testing.T) {
	for _, f := range Formats {
		for _, fill := range []byte{0xff, 0x80, 0x7f, 0x00} {
			c := max(256, f.BlockLen())
			m := matrix(f, 17, c, source(12), nil)
			codes := f.BlockBytes()
			for i := range m.Data {
				switch at := i % codes; {
				case f.GroupLen() == 0: // floats: keep them finite
				case f == quant.Q6_K && at >= 192, f != quant.Q6_K && at < 4: // scales stay
				default:
					m.Data[i] = fill
				}
			}
			for _, n := range []int{1, 20} {
				x := make([]float32, n*c)
				for i := range x {
					x[i] = float32(1 - 2*(i/c%2))
					if i/c%3 == 2 {
						x[i] = float32(1 - 2*(i%2))
					}
				}
				s.product(t, m, x, n, false)
				clear(x)
				s.product(t, m, x, n, false)
			}
		}
	}
}

// stop raises the flag while a large product is computed: it must return well before
// its time and leave the backend usable.
func (s *suite) stop(t *testing.T) {
	rng := source(13)
	const rows, cols, n = 2048, 1024, 256
	w := s.weight(t, s.b, quant.Q4_K, rows, cols, rng, nil)
	x, out := load(t, s.b, normals(rng, n*cols)), load(t, s.b, make([]float32, n*rows))
	product := func() { s.b.MatMul([]kernels.Buffer{out}, []kernels.Weight{w}, x, n, false) }

	var flag atomic.Bool
	s.b.SetStop(&flag)
	flag.Store(true)
	before := fetch(t, s.b, out)
	start := time.Now()
	for range 200 { // 200 whole products would take many seconds
		product()
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("200 stopped products took %v", d)
	}
	near(t, fetch(t, s.b, out), before, rows, 0)

	// Raised in the middle, from another goroutine, again and again.
	for range 20 {
		flag.Store(false)
		go flag.Store(true)
		product()
	}
	flag.Store(false)
	s.b.SetStop(nil)
	s.product(t, matrix(quant.Q4_K, 48, 256, rng, nil), normals(rng, 5*256), 5, false)
}
