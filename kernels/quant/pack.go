package quant

import (
	"encoding/binary"
	"math"
)

// f32 reads a float32.
func f32(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// Quantize packs values into whole blocks of f: plain rounding with the extremes of
// each group as its range, for tests and tiny models. It does not search for better
// scales as a quantiser for real weights would.
func Quantize(f Format, dst []byte, src []float32) {
	bl, size := f.BlockLen(), f.BlockBytes()
	for b := 0; b*bl < len(src); b++ {
		packBlock(f, dst[b*size:(b+1)*size], src[b*bl:(b+1)*bl])
	}
}

func packBlock(f Format, dst []byte, x []float32) {
	switch f {
	case F32:
		binary.LittleEndian.PutUint32(dst, math.Float32bits(x[0]))
	case F16:
		binary.LittleEndian.PutUint16(dst, F32ToF16(x[0]))
	case BF16:
		binary.LittleEndian.PutUint16(dst, F32ToBF16(x[0]))
	case Q4_0, Q5_0, Q8_0:
		packSymmetric(f, dst, x)
	case Q4_1, Q5_1:
		packAffine(f, dst, x)
	case Q4_K, Q5_K:
		packK(f, dst, x)
	case Q6_K:
		packQ6K(dst, x)
	default:
		panic("BUG: quant: Quantize to " + f.String())
	}
}

// round returns v rounded to an integer within lo..hi.
func round(v float32, lo, hi int) int {
	return min(max(int(math.RoundToEven(float64(v))), lo), hi)
}

// inverse returns 1/v, or 0 for 0.
func inverse(v float32) float32 {
	if v == 0 {
		return 0
	}
	return 1 / v
}

// bounds returns the least and the greatest of x.
func bounds(x []float32) (lo, hi float32) {
	lo, hi = x[0], x[0]
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

func packSymmetric(f Format, dst []byte, x []float32) {
	lo, hi := bounds(x)
	amax := max(-lo, hi)
	switch f {
	case Q8_0:
		h := F32ToF16(amax / 127)
		binary.LittleEndian.PutUint16(dst, h)
		inv := inverse(F16ToF32(h))
		for i, v := range x {
			dst[2+i] = byte(int8(round(v*inv, -127, 127)))
		}
	case Q4_0:
		h := F32ToF16(amax / 7)
		binary.LittleEndian.PutUint16(dst, h)
		inv := inverse(F16ToF32(h))
		putNibbles(dst[2:], x, func(v float32) int { return round(v*inv, -8, 7) + 8 })
	case Q5_0:
		h := F32ToF16(amax / 15)
		binary.LittleEndian.PutUint16(dst, h)
		inv := inverse(F16ToF32(h))
		high := putNibbles(dst[6:], x, func(v float32) int { return round(v*inv, -16, 15) + 16 })
		binary.LittleEndian.PutUint32(dst[2:], high)
	}
}

func packAffine(f Format, dst []byte, x []float32) {
	lo, hi := bounds(x)
	top := 15
	if f == Q5_1 {
		top = 31
	}
	d, m := F32ToF16((hi-lo)/float32(top)), F32ToF16(lo)
	binary.LittleEndian.PutUint16(dst, d)
	binary.LittleEndian.PutUint16(dst[2:], m)
	inv, base := inverse(F16ToF32(d)), F16ToF32(m)
	code := func(v float32) int { return round((v-base)*inv, 0, top) }
	if f == Q4_1 {
		putNibbles(dst[4:], x, code)
		return
	}
	binary.LittleEndian.PutUint32(dst[4:], putNibbles(dst[8:], x, code))
}

// putNibbles stores 32 codes as 16 bytes and returns the fifth bits.
func putNibbles(dst []byte, x []float32, code func(float32) int) (high uint32) {
	for i := range 16 {
		a, b := code(x[i]), code(x[i+16])
		dst[i] = byte(a&15 | b&15<<4)
		high |= uint32(a>>4&1)<<i | uint32(b>>4&1)<<(i+16)
	}
	return high
}

func packK(f Format, dst []byte, x []float32) {
	top := 15
	if f == Q5_K {
		top = 31
	}
	var scale, low [8]float32
	var maxScale, maxLow float32
	for j := range 8 {
		lo, hi := bounds(x[32*j : 32*j+32])
		lo = min(lo, 0) // the minimum of a group is subtracted, never added
		scale[j], low[j] = (hi-lo)/float32(top), -lo
		maxScale, maxLow = max(maxScale, scale[j]), max(maxLow, low[j])
	}
	hd, hm := F32ToF16(maxScale/63), F32ToF16(maxLow/63)
	binary.LittleEndian.PutUint16(dst, hd)
	binary.LittleEndian.PutUint16(dst[2:], hm)
	d, dmin := F16ToF32(hd), F16ToF32(hm)
	p := dst[4:16]
	clear(p)
	for j := range 8 {
		sc, mn := byte(round(scale[j]*inverse(d), 0, 63)), byte(round(low[j]*inverse(dmin), 0, 63))
		if j < 4 {
			p[j] |= sc
			p[j+4] |= mn
		} else {
			p[j+4] |= sc&15 | mn&15<<4
			p[j-4] |= sc >> 4 << 6
			p[j] |= mn >> 4 << 6
		}
	}
	qs := dst[16:]
	if f == Q5_K {
		clear(dst[16:48])
		qs = dst[48:]
	}
	for j := range 8 {
		sc, mn := ScaleMinK4(p, j)
		inv, m := inverse(d*float32(sc)), dmin*float32(mn)
		for l, v := range x[32*j : 32*j+32] {
			c := round((v+m)*inv, 0, top)
			q := &qs[j/2*32+l]
			if j%2 == 0 {
				*q = byte(c & 15)
			} else {
				*q |= byte(c & 15 << 4)
			}
			if f == Q5_K {
				dst[16+l] |= byte(c >> 4 << j)
			}
		}
	}
}

func packQ6K(dst []byte, x []float32) {
	var amax [16]float32
	var top float32
	for g := range 16 {
		lo, hi := bounds(x[16*g : 16*g+16])
		amax[g] = max(-lo, hi) / 31
		top = max(top, amax[g])
	}
	h := F32ToF16(top / 127)
	binary.LittleEndian.PutUint16(dst[208:], h)
	d := F16ToF32(h)
	clear(dst[:192])
	for g := range 16 {
		dst[192+g] = byte(round(amax[g]*inverse(d), 0, 127))
	}
	for i, v := range x {
		c := byte(round(v*inverse(d*float32(int8(dst[192+i/16]))), -32, 31) + 32)
		n, l, part := i/128, i%32, i%128/32
		ql := &dst[64*n+l+part%2*32]
		if part < 2 {
			*ql |= c & 15
		} else {
			*ql |= c & 15 << 4
		}
		dst[128+32*n+l] |= c >> 4 << (2 * part)
	}
}
