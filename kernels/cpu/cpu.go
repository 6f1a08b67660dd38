// Package cpu is the backend for amd64 processors: Go assembly for AVX2 and for
// AVX-512 VNNI, chosen when the backend is opened.
//
// Block-quantised weights are repacked at load into tiles of 16 rows (see
// layout.go) and multiplied as integers; float weights are used in place. One
// operation is shared by the caller and a pool of workers that are locked to
// operating system threads. The assembly is written by the program in asmgen; each
// call is bounded to a tile, so that neither cancellation nor the garbage collector
// waits for more than some tens of microseconds.
//
// On other processors, and with the build tag purego, New returns an error that
// wraps kernels.ErrUnavailable.
package cpu

//go:generate go run ./asmgen -o .

// Options sets up a backend.
type Options struct {
	Threads int    // workers that share one operation, the caller included; 0 means one per usable core
	Tier    string // "avx512vnni" or "avx2"; empty takes the best that the processor has
}

// The instruction tiers, best first.
const (
	tierAVX512 = "avx512vnni"
	tierAVX2   = "avx2"
)
