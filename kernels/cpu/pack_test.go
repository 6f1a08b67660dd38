//go:build amd64 && !purego

package cpu

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/kernels"
	"atoll/kernels/quant"
)

// TestPackedWeightsUnpackToSameValues packs random blocks and takes every value
// back out of the unpacked tiles of every tier.
func TestPackedWeightsUnpackToSameValues(t *testing.T) {
	for _, name := range Tiers() {
		for _, f := range packedFormats() {
			for _, cols := range []int{256, 512, 2304, 32, 96, 352} {
				if cols%f.BlockLen() != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%d", name, f, cols), func(t *testing.T) {
					const rows = 37 // the third tile is not full
					data := randomBlocks(f, rows*cols/f.BlockLen())
					packed := comparePacked(t, name, f, rows, cols, data)
					if extra := float64(packed)*37/48/float64(len(data)) - 1; extra > 0.035 && cols > 2000 {
						t.Errorf("packed tiles take %.1f %% more than the file's blocks", 100*extra)
					}
				})
			}
		}
	}
}

// FuzzPack packs any bytes: no block of a file may break packing, and values that
// are finite come out the same.
func FuzzPack(f *testing.F) {
	for _, format := range packedFormats() {
		f.Add(uint8(format), randomBlocks(format, 256/format.BlockLen()))
	}
	f.Fuzz(func(t *testing.T, format uint8, data []byte) {
		q := quant.Format(format)
		if _, ok := layouts[q]; !ok || len(Tiers()) == 0 {
			t.Skip()
		}
		blocks := min(len(data)/q.BlockBytes(), 64)
		if blocks == 0 {
			t.Skip()
		}
		for _, name := range Tiers() {
			comparePacked(t, name, q, 1, blocks*q.BlockLen(), data[:blocks*q.BlockBytes()])
		}
	})
}

func packedFormats() []quant.Format {
	return slices.Sorted(maps.Keys(layouts))
}

// comparePacked packs a matrix, unpacks every tile and compares each value with
// quant.Dequantize. It returns the size of the packed weight.
func comparePacked(t *testing.T, tier string, f quant.Format, rows, cols int, data []byte) int64 {
	be, err := New(Options{Threads: 2, Tier: tier})
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	kw, err := be.NewWeight(kernels.Matrix{Name: "m", Format: f, Rows: rows, Cols: cols, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	w, lay := kw.(*weight), layouts[f]
	want := make([]float32, cols)
	tile, scales := alignedBytes(w.groups*512), aligned(w.groups*32)
	signed := tier == tierAVX2 && f == quant.Q8_0
	for r := range w.tiles * tileRows {
		if r%tileRows == 0 {
			be.(*backend).tier.unpack[f](&tile[0], &scales[0], &w.data[r/tileRows*w.tileBytes], lay.head(w.groups), w.groups)
		}
		clear(want)
		if r < rows {
			quant.Dequantize(f, want, data[r*f.RowBytes(cols):(r+1)*f.RowBytes(cols)])
		}
		for k := range cols {
			g, i := k/groupLen, k%groupLen
			b := tile[512*g+64*(i/4)+4*(r%tileRows)+i%4]
			q := float64(b)
			if signed {
				q = float64(int8(b))
			} else if lay.scaling != scaleMin {
				q -= float64(int(1) << lay.shift)
			}
			s, m := float64(scales[32*g+r%tileRows]), float64(scales[32*g+16+r%tileRows])
			got := q * s
			switch {
			case lay.scaling == scaleMin:
				got += m
			case lay.scaling == scaleHalf && i >= 16:
				got = q * m
			}
			// An infinite or undefined scale gives something undefined on both sides.
			wrong := math.Abs(got-float64(want[k])) > 1e-6*(math.Abs(q*s)+math.Abs(m))
			if v := float64(want[k]); math.IsInf(v, 0) || math.IsNaN(v) {
				wrong = !math.IsInf(got, 0) && !math.IsNaN(got)
			}
			if wrong {
				t.Fatalf("row %d column %d: %v, want %v", r, k, got, want[k])
			}
		}
	}
	return w.Bytes()
}

// randomBlocks returns blocks of random codes whose half-precision scales are
// ordinary numbers.
func randomBlocks(f quant.Format, n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(f), 3))
	data := make([]byte, n*f.BlockBytes())
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	half := func(at int) { le.PutUint16(data[at:], uint16(rng.IntN(0x400)+0x2c00)|uint16(rng.IntN(2))<<15) }
	for b := range n {
		at := b * f.BlockBytes()
		switch f {
		case quant.Q6_K:
			half(at + 208)
		case quant.Q4_1, quant.Q5_1, quant.Q4_K, quant.Q5_K:
			half(at)
			half(at + 2)
		default:
			half(at)
		}
	}
	return data
}
