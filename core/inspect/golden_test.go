package inspect

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atoll/kernels/auto"
)

// TestPerplexity compares the perplexity of testdata/text/text.txt with llama.cpp's;
// testdata/golden/README.md says how its figures were made. The larger models are
// scored over their first windows only, unless ATOLL_FULL is 1; the plain-Go tier takes
// the first windows of the smallest one.
func TestPerplexity(t *testing.T) {
	text, err := os.ReadFile("../../testdata/text/text.txt")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("../../testdata/golden/perplexity.tsv")
	if err != nil {
		t.Fatal(err)
	}
	full := os.Getenv("ATOLL_FULL") == "1"
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		fields := strings.Split(line, "\t")
		name, file, windows := fields[0], fields[1], strings.Fields(fields[4])
		for _, tier := range tiers(t) {
			limit := len(windows)
			switch {
			case tier == "generic" && name != "smollm2-135m":
				continue // takes too long
			case tier == "generic":
				limit = 2
			case !full && name == "qwen2.5-coder-0.5b":
				limit = 2
			case !full && name == "qwen2.5-coder-1.5b":
				limit = 1
			}
			t.Run(name+" "+tier, func(t *testing.T) {
				path := filepath.Join(os.Getenv("ATOLL_MODELS"), file)
				if _, err := os.Stat(path); os.Getenv("ATOLL_MODELS") == "" || err != nil {
					msg := "needs the model file " + file + " in the directory that ATOLL_MODELS names (atoll model pull)"
					if os.Getenv("CI") == "true" {
						t.Fatal(msg)
					}
					t.Skip(msg)
				}
				got := perplexities(t, Options{Path: path, CPU: tier}, string(text), limit)
				want, err := strconv.ParseFloat(windows[limit-1], 64)
				if err != nil {
					t.Fatal(err)
				}
				off := got[limit-1]/want - 1
				t.Logf("%.4f over %d windows, llama.cpp %.4f: %+.2f %%", got[limit-1], limit, want, 100*off)
				// Over few windows there is less to average out.
				bar := 0.005
				if limit < len(windows) {
					bar = 0.01
				}
				if !(math.Abs(off) < bar) {
					t.Errorf("off by %.2f %%, want below %.1f %%", 100*off, 100*bar)
				}
			})
		}
	}
}

// tiers are the tiers of this processor.
func tiers(t *testing.T) []string {
	t.Helper()
	b, err := auto.Open(auto.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return auto.Tiers[:slices.Index(auto.Tiers, b.Info().Tier)+1] // the slowest first
}

// perplexities returns those after each of the first windows.
func perplexities(t *testing.T, o Options, text string, windows int) (got []float64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := Perplexity(ctx, o, text, 512, func(done, _ int, ppl float64) {
		if got = append(got, ppl); done == windows {
			cancel()
		}
	})
	if err != nil && len(got) < windows {
		t.Fatal(err)
	}
	return got
}
