package quant

import (
	"math"
	"math/rand/v2"
	"testing"
)

var blockFormats = []Format{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K}

// Blocks written by hand from the description of each format.
func TestDequantizeByHand(t *testing.T) {
	fill := func(n int, v byte) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = v
		}
		return b
	}
	cat := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	one, two, half := []byte{0x00, 0x3c}, []byte{0x00, 0x40}, []byte{0x00, 0x38}
	for _, c := range []struct {
		name string
		f    Format
		blk  []byte
		want map[int]float32
	}{
		{"low half first, biased by 8", Q4_0, cat(two, []byte{0x91}, fill(15, 0x88)), map[int]float32{0: -14, 16: 2, 1: 0, 31: 0}},
		{"offset added", Q4_1, cat(half, one, []byte{0xf2}, fill(15, 0)), map[int]float32{0: 2, 16: 8.5, 1: 1}},
		{"fifth bits in order", Q5_0, cat(one, []byte{0x01, 0x00, 0x02, 0x00}, []byte{0x43}, fill(15, 0)), map[int]float32{0: 3, 16: -12, 1: -16, 17: 0}},
		{"fifth bits and offset", Q5_1, cat(one, half, []byte{0x01, 0x00, 0x01, 0x80}, []byte{0x43}, fill(15, 0)), map[int]float32{0: 19.5, 16: 20.5, 31: 16.5, 1: 0.5}},
		{"signed bytes", Q8_0, cat(half, []byte{0x80, 0x7f}, fill(30, 0)), map[int]float32{0: -64, 1: 63.5, 2: 0}},
		// Scales: group 0 has 3 and minimum 2; group 4 has 0x21 (low 1 in p[8], high 2 in p[0]) and minimum 0x32.
		{"six-bit scales", Q4_K, cat(one, half, []byte{3 | 2<<6, 0, 0, 0, 2 | 3<<6, 0, 0, 0, 0x21, 0, 0, 0}, []byte{0x0f}, fill(63, 0), []byte{0x05}, fill(63, 0)),
			map[int]float32{0: 44, 1: -1, 32: 0, 128: 0x21*5 - 25, 129: -25}},
		{"fifth bit by group", Q5_K, cat(one, half, []byte{3, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, []byte{0x02}, fill(31, 0), []byte{0x3f}, fill(127, 0)),
			map[int]float32{0: 44, 1: -1, 32: 19, 33: 0}},
		{"two high bits", Q6_K, cat([]byte{0x21}, fill(31, 0), []byte{0x43}, fill(31, 0), fill(64, 0), []byte{0xe4}, fill(63, 0), []byte{2, 0, 1, 0, 0xff, 0, 3, 0}, fill(8, 0), half),
			map[int]float32{0: -31, 32: -6.5, 64: -1, 96: 30, 1: -32}},
	} {
		t.Run(c.f.String()+" "+c.name, func(t *testing.T) {
			if len(c.blk) != c.f.BlockBytes() {
				t.Fatalf("block of %d bytes, want %d", len(c.blk), c.f.BlockBytes())
			}
			dst := make([]float32, c.f.BlockLen())
			Dequantize(c.f, dst, c.blk)
			for i, w := range c.want {
				if dst[i] != w {
					t.Errorf("value %d = %v, want %v", i, dst[i], w)
				}
			}
		})
	}
}

// Packing and unpacking again stays within one step of the format.
func TestRoundTrip(t *testing.T) {
	steps := map[Format]float32{Q4_0: 1. / 7, Q4_1: 2. / 15, Q5_0: 1. / 15, Q5_1: 2. / 31, Q8_0: 1. / 127, Q4_K: 2. / 15, Q5_K: 2. / 31, Q6_K: 1. / 31, F32: 0, F16: 1e-3, BF16: 8e-3}
	rng := rand.New(rand.NewPCG(1, 2))
	for f, step := range steps {
		x := make([]float32, 4*MaxBlockLen)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		x[5] = 0
		b := make([]byte, f.RowBytes(len(x)))
		Quantize(f, b, x)
		y := make([]float32, len(x))
		Dequantize(f, y, b)
		for i := range x {
			lo, hi := bounds(x[i/32*32 : i/32*32+32])
			if d := math.Abs(float64(x[i] - y[i])); d > float64(0.75*step*max(-lo, hi)) {
				t.Errorf("%v: value %d: %v became %v", f, i, x[i], y[i])
				break
			}
		}
	}
}

func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		f := F16ToF32(uint16(h))
		want := math.Ldexp(float64(h&0x3ff|0x400), h>>10&31-25)
		if h>>10&31 == 0 {
			want = math.Ldexp(float64(h&0x3ff), -24)
		}
		switch {
		case h&0x7fff > 0x7c00:
			if f == f {
				t.Fatalf("%04x is not NaN", h)
			}
			continue
		case h&0x7fff == 0x7c00:
			want = math.Inf(1)
		}
		if h&0x8000 != 0 {
			want = -want
		}
		if float64(f) != want || F32ToF16(f) != uint16(h) {
			t.Fatalf("%04x = %v, back %04x, want %v", h, f, F32ToF16(f), want)
		}
	}
	for _, c := range []struct {
		f    float32
		want uint16
	}{
		{65519.99, 0x7bff}, {65520, 0x7c00}, {1e10, 0x7c00}, {-1e10, 0xfc00},
		{1 + 0x1p-11, 0x3c00}, {1 + 3*0x1p-11, 0x3c02}, {1 + 0x1.8p-11, 0x3c01}, // ties to even
		{0x1p-25, 0}, {0x1.8p-25, 1}, {0x1p-24 * 1.5, 2}, {0x1.ff8p-15, 0x3ff}, {0x1.ffcp-15, 0x400}, // subnormals
	} {
		if got := F32ToF16(c.f); got != c.want {
			t.Errorf("F32ToF16(%v) = %04x, want %04x", c.f, got, c.want)
		}
	}
	if got := F32ToBF16(1 + 0x1p-8); got != 0x3f80 {
		t.Errorf("bfloat16 tie = %04x", got)
	}
}

func FuzzDequantize(f *testing.F) {
	f.Add([]byte("any bytes are a block"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, ft := range append(blockFormats, F32, F16, BF16) {
			n := len(data) / ft.BlockBytes()
			dst := make([]float32, n*ft.BlockLen())
			Dequantize(ft, dst, data[:n*ft.BlockBytes()])
		}
	})
}
