//go:build amd64 && !purego

package cpu

import "atoll/kernels/quant"

// Packed weights.
//
// A tile holds 16 rows over all columns. Its unit is the group of 16 rows x 32
// columns, which is stored as lines of 64 bytes. In a line byte 4*r+b belongs to row
// r; for step s (0..7) of the group it holds column 4*s+b. So one 64-byte register
// (or two of 32 bytes) meets four activations that are broadcast as one dword.
//
//	4 bits  4 lines: line i holds step i in the low and step i+4 in the high nibbles
//	5 bits  and 1 line: bit s of a byte is bit 4 of step s
//	6 bits  4 lines and 2 lines: bits 2s..2s+1 of the first are bits 4..5 of step s,
//	        of the second those of step s+4
//	8 bits  8 lines: line s holds step s
//
// Formats with blocks of 32 begin a tile with the scales of all groups: f16 d[16],
// for the _1 formats f16 d[16], m[16], filled up to 64 bytes. K formats begin each
// run of 8 groups with 320 bytes: f16 d[16], dmin[16], u8 scale[8][16], min[8][16],
// or for Q6_K f16 d[16], 32 bytes unused, s8 scale[16][16].
//
// Rows that a matrix lacks in its last tile are zero.
const (
	tileRows = 16
	groupLen = 32
	kHeader  = 320
	kScales  = 64
	kMins    = 192
)

// Quantised activations.
//
// Columns are kept in panels of w. A record holds one group of a panel: int8
// q[8][w][4] (step, column, byte), float32 scale[w], float32 scale*sum[w], int32
// -sum[w], int32 -sum[w] of the first 16 values.
const recordBytes = 48 // times w

// scaling is how the integer sums of a group become a product.
type scaling int

const (
	scaleMin  scaling = iota // a scale and a minimum per group
	scaleOff                 // a scale per group, values offset by a power of two
	scaleHalf                // a scale per 16 values, values offset by a power of two
)

// layout describes the packed form of a format.
type layout struct {
	bits    int
	scaling scaling
	shift   int // log2 of the offset
	super   bool
	pack    func(tile []byte, head, row int, src []byte, blocks int)
}

var layouts = map[quant.Format]layout{
	quant.Q4_0: {4, scaleOff, 3, false, packQ40},
	quant.Q4_1: {4, scaleMin, 0, false, packQ41},
	quant.Q5_0: {5, scaleOff, 4, false, packQ50},
	quant.Q5_1: {5, scaleMin, 0, false, packQ51},
	quant.Q8_0: {8, scaleOff, 7, false, packQ80},
	quant.Q4_K: {4, scaleMin, 0, true, packQ4K},
	quant.Q5_K: {5, scaleMin, 0, true, packQ5K},
	quant.Q6_K: {6, scaleHalf, 5, true, packQ6K},
}

func (l layout) groupBytes() int { return 64 * l.bits }

// head returns the offset of the first quants in a tile of so many groups.
func (l layout) head(groups int) int {
	if l.super {
		return kHeader
	}
	return (l.scaleBytes()*groups + 63) &^ 63
}

// scaleBytes returns the size of the scales of a group that begin a tile.
func (l layout) scaleBytes() int {
	if l.scaling == scaleMin {
		return 64
	}
	return 32
}

// tileBytes returns the size of a tile of so many groups.
func (l layout) tileBytes(groups int) int {
	if l.super {
		return groups / 8 * (kHeader + 8*l.groupBytes())
	}
	return l.head(groups) + groups*l.groupBytes()
}
