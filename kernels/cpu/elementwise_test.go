//go:build amd64 && !purego

package cpu

import (
	"math"
	"testing"
)

// TestExponentialIsAccurate walks the exponential inside swiGLU: silu(x)/x = 1/(1+e^-x).
func TestExponentialIsAccurate(t *testing.T) {
	needTier(t)
	const n = 1 << 14
	gate, up, out := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range gate {
		gate[i] = float32(i-n/2) * (80.0 / (n / 2))
		up[i] = 1
	}
	swiGLU(&out[0], &gate[0], &up[0], n)
	for i, g := range gate {
		want := float64(g) / (1 + math.Exp(-float64(g)))
		if math.Abs(float64(out[i])-want) > 5e-7*math.Abs(want) {
			t.Fatalf("silu(%v) = %v, want %v", g, out[i], want)
		}
	}
}

// TestSoftmaxInSteps feeds scores in steps of odd lengths and compares with one
// softmax in float64.
func TestSoftmaxInSteps(t *testing.T) {
	needTier(t)
	scores := []float32{-5, 3, 100, 0, 2, -80, 99.5, 7, 101, 101, -1000, 50, 100.25, 1, 2, 3, 98}
	var total, top float64 = 0, 101
	for _, s := range scores {
		total += math.Exp(float64(s) - top)
	}
	for _, step := range []int{1, 2, 3, 5, 7, 8, 9, 16, 17} {
		state := []float32{float32(math.Inf(-1)), 0, 1, 0}
		weights := make([]float64, len(scores))
		for lo := 0; lo < len(scores); lo += step {
			row := make([]float32, 32)
			for i := range row {
				row[i] = 777 // must be zeroed up to a multiple of 8 and else be left alone
			}
			n := copy(row, scores[lo:min(lo+step, len(scores))])
			softmax(&row[0], n, &state[0])
			for i := range lo {
				weights[i] *= float64(state[2])
			}
			for i, v := range row {
				switch {
				case i < n:
					weights[lo+i] = float64(v)
				case i < (n+7)&^7 && v != 0, i >= (n+7)&^7 && v != 777:
					t.Fatalf("step %d: value %d after %d scores is %v", step, i, n, v)
				}
			}
		}
		for i, s := range scores {
			want := math.Exp(float64(s)-top) / total
			if got := weights[i] / float64(state[1]); math.Abs(got-want) > 1e-6 {
				t.Errorf("step %d: weight %d is %v, want %v", step, i, got, want)
			}
		}
	}
}
