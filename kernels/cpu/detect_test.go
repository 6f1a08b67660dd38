//go:build amd64 && !purego

package cpu

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"atoll/kernels"
)

func TestMissing(t *testing.T) {
	if got := missing([]feature{{"SSE2", 1, 0, 3, 26, 0}}); len(got) != 0 {
		t.Errorf("every amd64 processor has SSE2, missing said %v", got)
	}
	got := missing([]feature{{"reserved", 0x7fffffff, 0, 0, 0, 0}, {"unsaved", 1, 0, 3, 26, 1 << 30}})
	if want := []string{"reserved", "unsaved (not enabled by the operating system)"}; !slices.Equal(got, want) {
		t.Errorf("missing said %q, want %q", got, want)
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	_, err := New(Options{Tier: "sse9"})
	if err == nil || errors.Is(err, kernels.ErrUnavailable) || !strings.Contains(err.Error(), tierAVX512) {
		t.Errorf("unknown tier: %v", err)
	}
	if _, err := New(Options{Threads: -1}); err == nil {
		t.Error("negative threads: no error")
	}
	for _, tier := range tiers() {
		b, err := New(Options{Tier: tier.name})
		if slices.Contains(Tiers(), tier.name) {
			if err != nil {
				t.Fatal(err)
			}
			if i := b.Info(); i.Tier != tier.name || i.Threads < 1 || i.Reason == "" {
				t.Errorf("info %+v", i)
			}
			b.Close()
		} else if !errors.Is(err, kernels.ErrUnavailable) || !strings.Contains(err.Error(), missing(tier.needs)[0]) {
			t.Errorf("%s: %v", tier.name, err)
		}
	}
}

func TestClosedBackendRefuses(t *testing.T) {
	needTier(t)
	b, err := New(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if _, err := b.NewKV(kernels.KVShape{Layers: 1, KVHeads: 1, HeadDim: 64, Pages: 1}); !errors.Is(err, errClosed) {
		t.Errorf("cache of a closed backend: %v", err)
	}
}
