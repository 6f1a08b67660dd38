package auto

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"atoll/kernels"
	"atoll/kernels/cpu"
)

func TestOpen(t *testing.T) {
	have := append([]string{"generic"}, cpu.Tiers()...)
	best := have[min(1, len(have)-1)]
	for _, tier := range append([]string{""}, Tiers...) {
		t.Run("tier="+tier, func(t *testing.T) {
			b, err := Open(Options{Threads: 1, Tier: tier})
			if tier != "" && !slices.Contains(have, tier) {
				if !errors.Is(err, kernels.ErrUnavailable) || !strings.Contains(err.Error(), tier) {
					t.Fatalf("error %v, want one that names the tier and wraps ErrUnavailable", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			want := tier
			if want == "" {
				want = best
			}
			if i := b.Info(); i.Tier != want || i.Threads != 1 || i.Reason == "" {
				t.Errorf("opened %+v, want tier %s", i, want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, o := range []Options{{Tier: "sse9"}, {Threads: -1}, {Threads: MaxThreads + 1}} {
		if b, err := Open(o); err == nil {
			b.Close()
			t.Errorf("%+v: no error", o)
		}
	}
	_, err := Open(Options{Tier: "sse9"})
	for _, name := range Tiers {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %s", err, name)
		}
	}
}
