// Package kernels defines the operations that a transformer needs and the
// backends that carry them out.
//
// A [Backend] owns its memory: activations live in a [Buffer], weights in a
// [Weight], the key/value cache in a [KV]. Callers hold those handles and never
// look inside, so that an implementation may repack weights or keep them in
// device memory. The vocabulary sits here, the implementations beside it:
// kernels/ref is plain Go and is the specification, kernels/cpu is Go assembly,
// kernels/auto picks one. kernels/kerneltest holds the suite that each of them
// must pass.
//
// A backend runs one operation at a time: calls must not overlap. Operations on
// a stopped backend (see [Backend.SetStop]) return early and leave their output
// undefined.
package kernels

import (
	"errors"
	"sync/atomic"

	"atoll/kernels/quant"
)

// ErrUnavailable is wrapped by the error of a backend that this machine or this
// build cannot run; the text says why.
var ErrUnavailable = errors.New("backend unavailable")

// KVPage is the number of positions in one page of a key/value cache.
const KVPage = 16

// Info describes an opened backend.
type Info struct {
	Name    string // "ref", "cpu"
	Tier    string // instruction tier: "generic", "avx2", "avx512vnni"
	Threads int    // workers that share one operation
	Reason  string // why this one was picked, one line
}

// Buffer is a run of float32 activations owned by a backend, row-major where it
// holds a matrix.
type Buffer interface {
	Len() int // number of float32 values
}

// Weight is a matrix owned by a backend, ready for [Backend.MatMul].
type Weight interface {
	Rows() int // output features
	Cols() int // input features
	Bytes() int64
}

// KV is a paged key/value cache owned by a backend.
type KV interface {
	Pages() int
	Bytes() int64
}

// Matrix is a weight as it stands in a model file: Rows x Cols values in Format,
// row-major, each row Cols/Format.BlockLen() blocks.
type Matrix struct {
	Name   string // for errors
	Format quant.Format
	Rows   int
	Cols   int
	Data   []byte    // exactly Rows * Format.RowBytes(Cols) bytes
	Bias   []float32 // nil, or Rows values added to each product
}

// KVShape sizes a key/value cache of Pages pages, each of KVPage positions, with
// keys and values stored as IEEE half precision.
type KVShape struct {
	Layers  int
	KVHeads int
	HeadDim int
	Pages   int
}

// RopeKind says which two elements of a head are rotated together.
type RopeKind int

const (
	// RopeNorm rotates the neighbours (2i, 2i+1): llama.
	RopeNorm RopeKind = iota
	// RopeNeoX rotates (i, i+dims/2): qwen2.
	RopeNeoX
)

// Attention describes one causal attention over a paged cache. Query i of a batch
// stands at position Pos+i and sees the positions 0..Pos+i. Query head h reads
// key/value head h/(Heads/KVHeads).
type Attention struct {
	Layer   int
	Heads   int
	KVHeads int
	HeadDim int
	Scale   float32 // factor of the scores, usually 1/sqrt(HeadDim)
	Pages   []int32 // page table: position p is in page Pages[p/KVPage], cell p%KVPage
	Pos     int     // position of the first query
}

// Backend runs the operations. Sizes are checked: a shape that does not fit is a
// bug of the caller and panics with "BUG: ". n is the number of tokens of a batch.
type Backend interface {
	Info() Info

	// NewBuffer returns n zeroed values.
	NewBuffer(n int) (Buffer, error)
	// Slice returns the values off..off+n of b, sharing its memory.
	Slice(b Buffer, off, n int) Buffer
	// Write copies src to dst from value off on.
	Write(dst Buffer, off int, src []float32)
	// Read copies len(dst) values of src from value off on. It waits for all
	// earlier operations and returns the first error that one of them met.
	Read(dst []float32, src Buffer, off int) error

	// NewWeight takes m over, repacking it where that helps. m.Data is not kept
	// when the backend has a copy of its own: Weight.Bytes tells the size of that
	// copy, 0 if m.Data is used in place and must stay valid.
	NewWeight(m Matrix) (Weight, error)
	// NewKV returns an empty cache.
	NewKV(s KVShape) (KV, error)

	// MatMul computes dst[i][t][r] = sum_k w[i][r][k]*x[t][k] + bias[i][r] for each
	// weight, all of which have the same number of columns: x is n x Cols, dst[i] is
	// n x w[i].Rows(). For block-quantised formats x is first rounded to 8 bits in
	// groups of 32 (see [QuantizeGroup]), and sums within a group are exact integers.
	// With add, dst[i] is added to instead of overwritten.
	MatMul(dst []Buffer, w []Weight, x Buffer, n int, add bool)
	// RMSNorm computes dst[t] = x[t] / sqrt(mean(x[t]^2) + eps) * gain for n rows of
	// d values, d = gain.Len(). dst may be x.
	RMSNorm(dst, x, gain Buffer, n int, eps float32)
	// Rope rotates the n x heads x headDim values of x in place. cos and sin hold n
	// rows of dims/2 values; elements of a head beyond dims stay as they are.
	Rope(x, cos, sin Buffer, n, heads, headDim, dims int, kind RopeKind)
	// StoreKV rounds n rows of keys and values (KVHeads*HeadDim each) to half precision
	// and stores them at the positions pos..pos+n of the page table.
	StoreKV(kv KV, layer int, pages []int32, pos int, k, v Buffer, n int)
	// CopyPage copies all layers of a page, for copy-on-write.
	CopyPage(kv KV, dst, src int32)
	// Attend computes dst[t][h] = softmax(Scale * q[t][h] K^T) V; q and dst are
	// n x Heads x HeadDim.
	Attend(dst, q Buffer, kv KV, n int, a Attention)
	// SwiGLU computes dst[i] = silu(gate[i]) * up[i] over n values. dst may be gate.
	SwiGLU(dst, gate, up Buffer, n int)
	// Add computes dst[i] += x[i] over n values.
	Add(dst, x Buffer, n int)

	// SetStop gives the flag that operations look at between tiles (at least every few
	// milliseconds); nil takes it away.
	SetStop(stop *atomic.Bool)
	// Close frees everything; handles become invalid. Workers end.
	Close() error
}
