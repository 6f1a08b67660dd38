package quant

import "encoding/binary"

// MaxBlockLen is the largest number of values in a block of any format.
const MaxBlockLen = 256

// GroupLen returns the number of values that share a scale: 32, for Q6_K 16. It is
// 0 for formats without blocks.
func (f Format) GroupLen() int {
	switch f {
	case Q6_K:
		return 16
	case Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K:
		return 32
	}
	return 0
}

// Unpack splits blocks of a block format into integer codes and, for each group of
// GroupLen values, a scale and an offset: value = scale*code + offset. Offsets are
// 0 where the format has none. src holds whole blocks; codes takes one byte for each
// value, scale and offset one number for each group.
//
// The block layouts are those of the GGUF file format (ggml-common.h of ggml).
func Unpack(f Format, codes []int8, scale, offset []float32, src []byte) {
	size, bl := f.BlockBytes(), f.BlockLen()
	gl := f.GroupLen()
	if gl == 0 {
		panic("BUG: quant: Unpack of " + f.String())
	}
	for b := 0; b*size < len(src); b++ {
		blk := src[b*size : (b+1)*size]
		c := codes[b*bl : (b+1)*bl]
		s := scale[b*bl/gl : (b+1)*bl/gl]
		o := offset[b*bl/gl : (b+1)*bl/gl]
		switch f {
		case Q4_0:
			s[0], o[0] = half(blk), 0
			nibbles(c, blk[2:18], 8)
		case Q4_1:
			s[0], o[0] = half(blk), half(blk[2:])
			nibbles(c, blk[4:20], 0)
		case Q5_0:
			s[0], o[0] = half(blk), 0
			fiveBits(c, blk[6:22], binary.LittleEndian.Uint32(blk[2:]), 16)
		case Q5_1:
			s[0], o[0] = half(blk), half(blk[2:])
			fiveBits(c, blk[8:24], binary.LittleEndian.Uint32(blk[4:]), 0)
		case Q8_0:
			s[0], o[0] = half(blk), 0
			for i, q := range blk[2:34] {
				c[i] = int8(q)
			}
		case Q4_K:
			scalesK4(s, o, blk)
			for j := range 4 {
				pairs(c[64*j:64*j+64], blk[16+32*j:16+32*j+32])
			}
		case Q5_K:
			scalesK4(s, o, blk)
			qh := blk[16:48]
			for j := range 4 {
				pairs(c[64*j:64*j+64], blk[48+32*j:48+32*j+32])
				for l, h := range qh {
					c[64*j+l] += int8(h >> (2 * j) & 1 << 4)
					c[64*j+32+l] += int8(h >> (2*j + 1) & 1 << 4)
				}
			}
		case Q6_K:
			sixBits(c, s, o, blk)
		}
	}
}

// half reads a half-precision number.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

// nibbles unpacks 16 bytes: low halves first, then high halves.
func nibbles(c []int8, q []byte, bias int8) {
	for i, v := range q {
		c[i] = int8(v&15) - bias
		c[i+16] = int8(v>>4) - bias
	}
}

// fiveBits is nibbles with a fifth bit of each value in h.
func fiveBits(c []int8, q []byte, h uint32, bias int8) {
	for i, v := range q {
		c[i] = int8(v&15|byte(h>>i&1)<<4) - bias
		c[i+16] = int8(v>>4|byte(h>>(i+16)&1)<<4) - bias
	}
}

// pairs unpacks 32 bytes of a K block: low halves first, then high halves.
func pairs(c []int8, q []byte) {
	for l, v := range q {
		c[l] = int8(v & 15)
		c[l+32] = int8(v >> 4)
	}
}

// ScaleMinK4 returns the 6-bit scale and minimum of group j (0..7) of the 12 packed
// bytes of a Q4_K or Q5_K block.
func ScaleMinK4(p []byte, j int) (sc, mn uint8) {
	if j < 4 {
		return p[j] & 63, p[j+4] & 63
	}
	return p[j+4]&15 | p[j-4]>>6<<4, p[j+4]>>4 | p[j]>>6<<4
}

func scalesK4(s, o []float32, blk []byte) {
	d, dmin := half(blk), half(blk[2:])
	for j := range 8 {
		sc, mn := ScaleMinK4(blk[4:16], j)
		s[j] = d * float32(sc)
		o[j] = -(dmin * float32(mn))
	}
}

func sixBits(c []int8, s, o []float32, blk []byte) {
	d := half(blk[208:])
	for i, sc := range blk[192:208] {
		s[i] = d * float32(int8(sc))
		o[i] = 0
	}
	for n := range 2 {
		ql, qh, c := blk[64*n:64*n+64], blk[128+32*n:128+32*n+32], c[128*n:128*n+128]
		for l, h := range qh {
			c[l] = int8(ql[l]&15|h&3<<4) - 32
			c[l+32] = int8(ql[l+32]&15|h>>2&3<<4) - 32
			c[l+64] = int8(ql[l]>>4|h>>4&3<<4) - 32
			c[l+96] = int8(ql[l+32]>>4|h>>6<<4) - 32
		}
	}
}

// Dequantize turns whole blocks of any known format into float32 values; dst has
// exactly as many.
func Dequantize(f Format, dst []float32, src []byte) {
	switch f {
	case F32:
		for i := range dst {
			dst[i] = f32(src[4*i:])
		}
		return
	case F16:
		for i := range dst {
			dst[i] = half(src[2*i:])
		}
		return
	case BF16:
		for i := range dst {
			dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
		return
	}
	var (
		codes         [MaxBlockLen]int8
		scale, offset [16]float32
	)
	bl, size, gl := f.BlockLen(), f.BlockBytes(), f.GroupLen()
	for len(dst) > 0 {
		Unpack(f, codes[:bl], scale[:bl/gl], offset[:bl/gl], src[:size])
		for i, c := range codes[:bl] {
			dst[i] = scale[i/gl]*float32(c) + offset[i/gl]
		}
		dst, src = dst[bl:], src[size:]
	}
}
