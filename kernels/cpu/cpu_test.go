//go:build amd64 && !purego

package cpu

import (
	"os"
	"testing"

	"atoll/kernels"
	"atoll/kernels/kerneltest"
)

// needTier skips a test where no tier runs; a CI machine has one.
func needTier(t *testing.T) {
	t.Helper()
	if len(Tiers()) > 0 {
		return
	}
	const msg = "this processor runs no tier"
	if os.Getenv("CI") == "true" {
		t.Fatal(msg)
	}
	t.Skip(msg)
}

func TestConformance(t *testing.T) {
	needTier(t)
	for _, tier := range Tiers() {
		t.Run(tier, func(t *testing.T) {
			kerneltest.Run(t, func(threads int) (kernels.Backend, error) {
				return New(Options{Threads: threads, Tier: tier})
			})
		})
	}
}

func BenchmarkBackend(b *testing.B) {
	for _, tier := range Tiers() {
		b.Run(tier, func(b *testing.B) {
			kerneltest.Bench(b, func(threads int) (kernels.Backend, error) {
				return New(Options{Threads: threads, Tier: tier})
			})
		})
	}
}
