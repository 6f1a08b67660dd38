package main

// scaling is the way in which a format gives scales and minimums.
type scaling int

const (
	scaleD  scaling = iota // f16 scale per 32, values are offset
	scaleDM                // f16 scale and f16 minimum per 32
	scaleK4                // f16 d, dmin per 256; 6-bit scale and minimum per 32
	scaleK6                // f16 d per 256; int8 scale per 16, values are offset
)

// format describes a packed weight format: see package cpu, file layout.go, for
// the layout in memory.
type format struct {
	name   string
	bits   int
	scale  scaling
	offset int // log2 of what is subtracted from the unsigned value; 0: nothing
}

var formats = []format{
	{"Q4_0", 4, scaleD, 3},
	{"Q4_1", 4, scaleDM, 0},
	{"Q5_0", 5, scaleD, 4},
	{"Q5_1", 5, scaleDM, 0},
	{"Q8_0", 8, scaleD, 7},
	{"Q4_K", 4, scaleK4, 0},
	{"Q5_K", 5, scaleK4, 0},
	{"Q6_K", 6, scaleK6, 5},
}

func (f format) super() bool { return f.scale >= scaleK4 }

// groupBytes is the size of the quants of 16 rows x 32 values.
func (f format) groupBytes() int { return 64 * f.bits }

// Sizes of a K tile: header of a super-block and its parts.
const (
	kHeader = 320 // f16 d[16], dmin[16]; then 256 bytes of scales
	kScales = 64  // u8 sc[8][16], mn[8][16]; Q6_K: s8 sc[16][16]
	kMins   = 192
)

// Sizes of a record of quantised activations: 32 values of w columns.
const recordBytes = 48 // times w: q 32, scale 4, scale*sum 4, -sum 4, -sum of the first half 4
