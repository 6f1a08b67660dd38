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
	if o.Tier == "" {
		return nil, fmt.Errorf("open cpu backend: this build has no assembly: %w", kernels.ErrUnavailable)
	}
	return nil, fmt.Errorf("open cpu backend: %s: this build has no assembly: %w", o.Tier, kernels.ErrUnavailable)
}
