package quant

import "math"

// F16ToF32 widens an IEEE 754 half-precision number, exactly.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h & 0x3ff)
	switch {
	case exp == 0x1f: // infinity, NaN
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
	v := float32(frac) * 0x1p-24 // zero and subnormals
	return math.Float32frombits(sign | math.Float32bits(v))
}

// F32ToF16 rounds to the nearest half-precision number, ties to even; what is too
// large becomes infinity, a NaN stays a quiet NaN.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x1ff)
	case b >= 0x477ff000: // 65520 and more
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: a multiple of 2^-24
		// Adding 0.5 puts the unit of the last place at 2^-24, so the addition rounds.
		r := math.Float32bits(math.Float32frombits(b)+0.5) - math.Float32bits(0.5)
		return sign | uint16(r)
	}
	odd := b >> 13 & 1
	return sign | uint16((b+0xfff+odd-(112<<23))>>13)
}

// BF16ToF32 widens a bfloat16 number, exactly.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to the nearest bfloat16 number, ties to even; a NaN stays a
// quiet NaN.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
