//go:build amd64 && !purego

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"atoll/kernels"
	"atoll/kernels/quant"
)

// TestPackedWeightsUnpackToSameValues packs random blocks and takes every value
// back out of the unpacked tiles of every tier.
func TestPackedWeightsUnpackToSameValues(t *testing.T) {
	for _, name := range Tiers() {
		for f, lay := range layouts {
			for _, cols := range []int{256, 512, 2304, 32, 96, 352} {
				if cols%f.BlockLen() != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%d", name, f, cols), func(t *testing.T) {
					be, err := New(Options{Threads: 2, Tier: name})
					if err != nil {
						t.Fatal(err)
					}
					defer be.Close()
					const rows = 37 // the third tile is not full
					m := kernels.Matrix{Name: "m", Format: f, Rows: rows, Cols: cols, Data: randomBlocks(f, rows*cols/f.BlockLen())}
					kw, err := be.NewWeight(m)
					if err != nil {
						t.Fatal(err)
					}
					w := kw.(*weight)
					size := int64(len(m.Data)) * 48 / 37
					if extra := float64(w.Bytes())/float64(size) - 1; extra > 0.035 && cols > 2000 {
						t.Errorf("packed tiles take %.1f %% more than the file's blocks", 100*extra)
					}
					want := make([]float32, cols)
					tile, scales := alignedBytes(w.groups*512), aligned(w.groups*32)
					signed := name == tierAVX2 && f == quant.Q8_0
					for r := range w.tiles * tileRows {
						if r%tileRows == 0 {
							be.(*backend).tier.unpack[f](&tile[0], &scales[0], &w.data[r/tileRows*w.tileBytes], lay.head(w.groups), w.groups)
						}
						clear(want)
						if r < rows {
							quant.Dequantize(f, want, m.Data[r*f.RowBytes(cols):(r+1)*f.RowBytes(cols)])
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
							if math.Abs(got-float64(want[k])) > 1e-6*(math.Abs(q*s)+math.Abs(m)) {
								t.Fatalf("row %d column %d: %v, want %v", r, k, got, want[k])
							}
						}
					}
				})
			}
		}
	}
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
