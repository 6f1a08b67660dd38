//go:build amd64 && !purego

package cpu

import "atoll/kernels/quant"

// Signatures of the kernels; stubs_amd64.go documents the arguments.
type (
	directKernel func(dst *float32, stride, cols int, tile *byte, head, tileBytes, tiles int, x *byte, groups, add int)
	unpackKernel func(dst *byte, scales *float32, tile *byte, head, groups int)
	gemmKernel   func(dst *float32, stride, cols int, wq *byte, scales *float32, x *byte, groups, shift, add int)
	scoreKernel  func(dst, q *float32, pages **byte, n, dim int)
	valueKernel  func(acc *float32, accRow int, factor, s *float32, pages **byte, n, dim int)
	denseKernel  func(sums *float32, w *byte, rowBytes int, x *float32, colBytes, k int)
)

// tier is the set of kernels for one level of instructions.
type tier struct {
	name  string
	needs []feature

	// direct kernels multiply packed tiles with 1 or, where there is one, up to 4 columns.
	direct     map[quant.Format]map[int]directKernel
	directCols int // the widest
	unpack     map[quant.Format]unpackKernel
	// gemm kernels multiply unpacked tiles with a panel of 4, 8 or 12 columns.
	gemm   map[quant.Format]map[int]gemmKernel
	score  map[int]scoreKernel
	value  map[int]valueKernel
	widths []int // of attention columns, ascending

	dense     map[quant.Format]map[[2]int]denseKernel
	denseCols int // most columns of a dense kernel
	lanes     int
}

// tiers lists all tiers, best first.
func tiers() []*tier { return []*tier{avx512Tier(), avx2Tier()} }
