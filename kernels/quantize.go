package kernels

import "math"

// GroupLen is the number of activations that share a scale.
const GroupLen = 32

// QuantizeGroup rounds one group of GroupLen activations to signed bytes: the
// scale is max|x|/127 and q = round-half-even(x/scale), computed as x*(127/max|x|) in
// float32. It returns the scale and the sum of the rounded values. It is the
// specification of what [Backend.MatMul] does to its input.
func QuantizeGroup(q []int8, x []float32) (scale float32, sum int32) {
	var amax float32
	for _, v := range x[:GroupLen] {
		if v < 0 {
			v = -v
		}
		if v > amax {
			amax = v
		}
	}
	if amax == 0 {
		clear(q[:GroupLen])
		return 0, 0
	}
	inv := 127 / amax
	for i, v := range x[:GroupLen] {
		r := int8(math.RoundToEven(float64(v * inv)))
		q[i] = r
		sum += int32(r)
	}
	return amax / 127, sum
}
