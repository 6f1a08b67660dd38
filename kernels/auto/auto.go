// Package auto picks the backend for this machine and says why.
package auto

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"atoll/kernels"
	"atoll/kernels/cpu"
	"atoll/kernels/ref"
)

// Options chooses a backend.
type Options struct {
	// Threads is the number of workers; 0 means one for each usable core.
	Threads int
	// Tier forces an instruction tier ("generic", "avx2", "avx512vnni"); empty takes
	// the best that the processor has.
	Tier string
}

// MaxThreads is the largest Options.Threads. More are no use on any machine, and the
// Go runtime ends a process of ten thousand.
const MaxThreads = 1024

// Tiers lists the names that Options.Tier takes.
var Tiers = []string{"generic", "avx2", "avx512vnni"}

// Open returns the backend. A forced tier that the processor lacks is an error that
// wraps [kernels.ErrUnavailable]; nothing else is taken in its place.
func Open(o Options) (kernels.Backend, error) {
	if o.Threads < 0 || o.Threads > MaxThreads {
		return nil, fmt.Errorf("open backend: %d threads, want 0 to %d", o.Threads, MaxThreads)
	}
	if o.Threads == 0 {
		o.Threads = min(runtime.GOMAXPROCS(0), MaxThreads)
	}
	if o.Tier != "" && !slices.Contains(Tiers, o.Tier) {
		return nil, fmt.Errorf("open backend: unknown tier %q, want one of %s", o.Tier, strings.Join(Tiers, ", "))
	}
	generic := func() kernels.Backend { return ref.New(ref.Options{Threads: o.Threads}) }
	if o.Tier == "generic" {
		return generic(), nil
	}
	b, err := cpu.New(cpu.Options{Threads: o.Threads, Tier: o.Tier})
	if err == nil {
		return b, nil
	}
	if o.Tier == "" && errors.Is(err, kernels.ErrUnavailable) {
		return because{generic(), err.Error()}, nil
	}
	return nil, err
}

// because is a backend that was taken for want of a better one.
type because struct {
	kernels.Backend
	reason string
}

// Info implements the same method as documented on kernels.Backend.
func (b because) Info() kernels.Info {
	i := b.Backend.Info()
	i.Reason += ": " + b.reason
	return i
}
