package ref_test

import (
	"testing"

	"atoll/kernels"
	"atoll/kernels/kerneltest"
	"atoll/kernels/ref"
)

// The reference with several threads agrees with itself on one; that the one is
// right is checked in oracle_test.go.
func TestConformance(t *testing.T) {
	kerneltest.Run(t, func(threads int) (kernels.Backend, error) { return ref.New(ref.Options{Threads: threads}), nil })
}

func BenchmarkRef(b *testing.B) {
	kerneltest.Bench(b, func(threads int) (kernels.Backend, error) { return ref.New(ref.Options{Threads: threads}), nil })
}
