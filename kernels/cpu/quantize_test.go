//go:build amd64 && !purego

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"atoll/kernels"
)

// record reads column c of a record of quantised activations.
func record(rec []byte, w, c int) (q [groupLen]int8, scale, scaled float32, sum, first int32) {
	for k := range q {
		q[k] = int8(rec[k/4*4*w+4*c+k%4])
	}
	u := func(off int) uint32 { return le.Uint32(rec[off*w+4*c:]) }
	return q, math.Float32frombits(u(32)), math.Float32frombits(u(36)), -int32(u(40)), -int32(u(44))
}

func TestQuantizeFollowsSpecification(t *testing.T) {
	needTier(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	fill := func(f func(i int) float32) []float32 {
		x := make([]float32, groupLen)
		for i := range x {
			x[i] = f(i)
		}
		return x
	}
	rng := rand.New(rand.NewPCG(1, 2))
	cases := []struct {
		name string
		x    []float32
	}{
		{"zeros", fill(func(int) float32 { return 0 })},
		{"negative zeros", fill(func(int) float32 { return float32(math.Copysign(0, -1)) })},
		{"ties", fill(func(i int) float32 {
			if i == 0 {
				return 127
			}
			return float32(i) - 15.5
		})},
		{"one value", fill(func(i int) float32 { return map[bool]float32{true: -3}[i == 31] })},
		{"equal", fill(func(int) float32 { return 0.1 })},
		{"smallest denormals", fill(func(i int) float32 { return math.Float32frombits(uint32(i)) })},
		{"denormal maximum whose inverse overflows", fill(func(i int) float32 { return math.Float32frombits(uint32(i * 1000)) })},
		{"smallest normal", fill(func(i int) float32 { return float32(i-16) * 1.2e-38 })},
		{"huge", fill(func(i int) float32 { return float32(i-16) * 2e37 })},
		{"infinite", fill(func(i int) float32 { return map[bool]float32{true: inf, false: 1}[i == 5] })},
		{"not a number", fill(func(i int) float32 { return map[bool]float32{true: nan, false: float32(i)}[i%7 == 5] })},
		{"only not a number", fill(func(int) float32 { return nan })},
	}
	for i := range 500 {
		scale := math.Exp(rng.NormFloat64() * 10)
		cases = append(cases, struct {
			name string
			x    []float32
		}{fmt.Sprintf("random %d", i), fill(func(int) float32 { return float32(rng.NormFloat64() * scale) })})
	}
	for _, w := range []int{1, 4, 8, 12} {
		for _, c := range cases {
			col := rng.IntN(w)
			x := append(append([]float32(nil), cases[0].x...), c.x...) // the second group of a column
			rec := make([]byte, 2*recordBytes*w)
			quantize(&rec[4*col], &x[0], 2, 4*w)
			var want [groupLen]int8
			scale, sum := kernels.QuantizeGroup(want[:], c.x)
			got, gotScale, gotScaled, gotSum, gotFirst := record(rec[recordBytes*w:], w, col)
			first := int32(0)
			for _, v := range want[:16] {
				first += int32(v)
			}
			if got != want {
				t.Fatalf("%s: rounded to\n%v, want\n%v", c.name, got, want)
			}
			same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }
			if !same(gotScale, scale) || gotSum != sum || gotFirst != first || !same(gotScaled, scale*float32(sum)) {
				t.Fatalf("%s: scale %v sum %d first %d product %v, want %v %d %d %v",
					c.name, gotScale, gotSum, gotFirst, gotScaled, scale, sum, first, scale*float32(sum))
			}
			for i, b := range rec {
				if i%(4*w)/4 != col && b != 0 {
					t.Fatalf("%s: byte %d of another column was written", c.name, i)
				}
			}
		}
	}
}
