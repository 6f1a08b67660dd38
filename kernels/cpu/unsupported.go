//go:build !amd64 || purego

package cpu

import (
	"fmt"

	"atoll/kernels"
)

// Tiers returns the tiers that this processor can run: none in this build.
func Tiers() []string { return nil }

// New returns an error: this build has no assembly for the processor.
func New(o Options) (kernels.Backend, error) {
	return nil, fmt.Errorf("open cpu backend: this build has no assembly: %w", kernels.ErrUnavailable)
}
