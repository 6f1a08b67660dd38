// Package quant describes the block formats of GGUF weights in plain Go: sizes,
// unpacking to float32, and packing for tests and tools.
package quant

import "fmt"

// Format is the storage format of a tensor; the values are the type numbers of
// the GGUF file format.
type Format uint32

// The formats that atoll reads.
const (
	F32  Format = 0
	F16  Format = 1
	Q4_0 Format = 2
	Q4_1 Format = 3
	Q5_0 Format = 6
	Q5_1 Format = 7
	Q8_0 Format = 8
	Q4_K Format = 12
	Q5_K Format = 13
	Q6_K Format = 14
	BF16 Format = 30
)

// formats holds name, values per block and bytes per block.
var formats = map[Format]struct {
	name       string
	len, bytes int
}{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20},
	Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24}, Q8_0: {"Q8_0", 32, 34},
	Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176}, Q6_K: {"Q6_K", 256, 210},
}

// Known reports whether atoll can read the format.
func (f Format) Known() bool { _, ok := formats[f]; return ok }

// String returns the usual name, or "type N".
func (f Format) String() string {
	if i, ok := formats[f]; ok {
		return i.name
	}
	return fmt.Sprintf("type %d", uint32(f))
}

// BlockLen returns the number of values in a block, 0 for an unknown format.
func (f Format) BlockLen() int { return formats[f].len }

// BlockBytes returns the size of a block in bytes, 0 for an unknown format.
func (f Format) BlockBytes() int { return formats[f].bytes }

// RowBytes returns the size of a row of cols values; cols must be a multiple of
// BlockLen.
func (f Format) RowBytes(cols int) int { return cols / f.BlockLen() * f.BlockBytes() }
