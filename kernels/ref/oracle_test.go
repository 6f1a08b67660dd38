package ref

import (
	"math"
	"math/rand/v2"
	"testing"

	"atoll/kernels"
	"atoll/kernels/quant"
)

func random(n int) []float32 {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

func buf(x []float32) buffer { return append(buffer(nil), x...) }

// Products agree with float64 arithmetic on unrounded activations, up to the error
// of 8-bit activations.
func TestMatMulAgainstFloat64(t *testing.T) {
	const rows, cols, n = 24, 512, 5
	for _, f := range []quant.Format{quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K} {
		data := make([]byte, rows*f.RowBytes(cols))
		quant.Quantize(f, data, random(rows*cols))
		bias := random(rows)
		b := New(Options{Threads: 2})
		w, err := b.NewWeight(kernels.Matrix{Name: "w", Format: f, Rows: rows, Cols: cols, Data: data, Bias: bias})
		if err != nil {
			t.Fatal(err)
		}
		x, out := random(n*cols), make(buffer, n*rows)
		b.MatMul([]kernels.Buffer{out}, []kernels.Weight{w}, buf(x), n, false)
		vals := make([]float32, rows*cols)
		quant.Dequantize(f, vals, data)
		var worst float64
		for tok := range n {
			for r := range rows {
				want := float64(bias[r])
				for k := range cols {
					want += float64(vals[r*cols+k]) * float64(x[tok*cols+k])
				}
				worst = max(worst, math.Abs(want-float64(out[tok*rows+r])))
			}
		}
		// A product of 512 normal pairs is around 22; rounding adds about 0.6 % of it.
		limit := 0.8
		if f.GroupLen() == 0 {
			limit = 1e-3
		}
		if worst > limit {
			t.Errorf("%v: off by %v", f, worst)
		}
	}
}

func TestRopeByHand(t *testing.T) {
	cos, sin := buffer{0, 1}, buffer{1, 0} // a quarter turn of the first pair
	for _, c := range []struct {
		kind kernels.RopeKind
		want buffer
	}{{kernels.RopeNorm, buffer{-2, 1, 3, 4, 9}}, {kernels.RopeNeoX, buffer{-3, 2, 1, 4, 9}}} {
		x := buffer{1, 2, 3, 4, 9}
		New(Options{}).Rope(x, cos, sin, 1, 1, 5, 4, c.kind)
		for i := range x {
			if x[i] != c.want[i] {
				t.Errorf("kind %d: %v, want %v", c.kind, x, c.want)
				break
			}
		}
	}
}

// Attention agrees with the textbook formula in float64.
func TestAttendAgainstFloat64(t *testing.T) {
	const heads, kvHeads, hd, pos, n = 6, 2, 16, 20, 7
	b := New(Options{Threads: 2})
	kv, err := b.NewKV(kernels.KVShape{Layers: 2, KVHeads: kvHeads, HeadDim: hd, Pages: 4})
	if err != nil {
		t.Fatal(err)
	}
	pages := []int32{3, 1}
	k, v, q := random((pos+n)*kvHeads*hd), random((pos + n) * kvHeads * hd)[:], random(n*heads*hd)
	for i := range v {
		v[i] = -v[i] * 0.5
	}
	b.StoreKV(kv, 1, pages, 0, buf(k), buf(v), pos+n)
	out := make(buffer, len(q))
	b.Attend(out, buf(q), kv, n, kernels.Attention{Layer: 1, Heads: heads, KVHeads: kvHeads, HeadDim: hd, Scale: 0.25, Pages: pages, Pos: pos})
	for tok := range n {
		for h := range heads {
			kh := h / (heads / kvHeads)
			var sum float64
			want := make([]float64, hd)
			for p := range pos + tok + 1 {
				var s float64
				for i := range hd {
					s += float64(q[(tok*heads+h)*hd+i]) * float64(quant.F16ToF32(quant.F32ToF16(k[(p*kvHeads+kh)*hd+i])))
				}
				e := math.Exp(s * 0.25)
				sum += e
				for i := range hd {
					want[i] += e * float64(quant.F16ToF32(quant.F32ToF16(v[(p*kvHeads+kh)*hd+i])))
				}
			}
			for i := range hd {
				if got := float64(out[(tok*heads+h)*hd+i]); math.Abs(got-want[i]/sum) > 1e-5 {
					t.Fatalf("token %d head %d dim %d: %v, want %v", tok, h, i, got, want[i]/sum)
				}
			}
		}
	}
}
