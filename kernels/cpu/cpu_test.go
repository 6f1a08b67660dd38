//go:build amd64 && !purego

package cpu

import (
	"os"
	"testing"

	"atoll/kernels"
	"atoll/kernels/kerneltest"
)

func TestConformance(t *testing.T) {
	if len(Tiers()) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("this processor runs no tier")
		}
		t.Skip("this processor runs no tier")
	}
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
