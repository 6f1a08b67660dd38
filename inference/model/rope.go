package model

import "math"

// frequencies returns the angle that each pair of a head turns per position, in
// float64: Dims/2 values. factors, one for each pair or nil, divide them (llama 3).
//
// Linear scaling divides all angles by the factor. YaRN (Peng et al. 2023) leaves
// the fast pairs alone, which turn more than betaFast times within the original
// context, divides the slow ones, which turn less than betaSlow times, and ramps
// between the two.
func (r Rope) frequencies(factors []float32) []float64 {
	const betaFast, betaSlow = 32, 1
	half := r.Dims / 2
	// pairOf returns the pair, as a fraction, that turns n times within the original context.
	pairOf := func(n float64) float64 {
		return float64(r.Dims) * math.Log(float64(r.OriginalContext)/(n*2*math.Pi)) / (2 * math.Log(r.Base))
	}
	low := math.Max(0, math.Floor(pairOf(betaFast)))
	high := math.Min(float64(r.Dims-1), math.Ceil(pairOf(betaSlow)))

	out := make([]float64, half)
	for i := range out {
		f := math.Pow(r.Base, -2*float64(i)/float64(r.Dims))
		if factors != nil {
			f /= float64(factors[i])
		}
		switch r.Scaling {
		case "linear":
			f /= r.Factor
		case "yarn":
			ramp := (float64(i) - low) / math.Max(0.001, high-low)
			keep := 1 - math.Min(1, math.Max(0, ramp)) // 1: as trained, 0: divided
			f = f*keep + f/r.Factor*(1-keep)
		}
		out[i] = f
	}
	return out
}

// angles fills cos and sin, n rows of len(freq) values, for the positions from
// pos on. The product is formed in float64: a float32 position times a small angle
// loses digits in long contexts.
func (r Rope) angles(cos, sin []float32, freq []float64, pos, n int) {
	i := 0
	for p := pos; p < pos+n; p++ {
		for _, f := range freq {
			s, c := math.Sincos(float64(p) * f)
			cos[i], sin[i] = float32(c*r.Attention), float32(s*r.Attention)
			i++
		}
	}
}
