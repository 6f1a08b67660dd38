package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var (
	nan  = float32(math.NaN())
	inf  = float32(math.Inf(1))
	ninf = float32(math.Inf(-1))
)

// only is a mask that allows the listed ids.
type only []int32

func (o only) Allowed(id int32) bool { return slices.Contains(o, id) }

func TestGreedy(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      Options
		logits []float32
		recent []int32
		mask   Mask
		want   int32
	}{
		{"largest", Options{}, []float32{1, 3, 2}, nil, nil, 1},
		{"tie goes to the lowest id", Options{}, []float32{1, 3, 3}, nil, nil, 1},
		{"negative", Options{}, []float32{-5, -3, -4}, nil, nil, 1},
		{"NaN is never picked", Options{}, []float32{nan, -3, nan}, nil, nil, 1},
		{"plus infinity", Options{}, []float32{1, inf, inf}, nil, nil, 1},
		{"minus infinity only", Options{}, []float32{ninf, nan}, nil, nil, None},
		{"empty", Options{}, nil, nil, nil, None},
		{"mask allows the best", Options{}, []float32{1, 3, 2}, nil, only{1}, 1},
		{"mask refuses the best", Options{}, []float32{1, 3, 2}, nil, only{0, 2}, 2},
		{"mask refuses all", Options{}, []float32{1, 3, 2}, nil, only{}, None},
		{"mask leaves minus infinity", Options{}, []float32{1, ninf}, nil, only{1}, None},
		{"penalty divides positive logits", Options{RepeatPenalty: 2}, []float32{1, 3, 2}, []int32{1}, nil, 2},
		{"penalty multiplies negative logits", Options{RepeatPenalty: 2}, []float32{-2, -1, -1.5}, []int32{1}, nil, 2},
		{"penalty counts a token once", Options{RepeatPenalty: 1.2}, []float32{2, 3}, []int32{1, 1, 1, 1}, nil, 1},
		{"penalty off", Options{RepeatPenalty: 1}, []float32{1, 3, 2}, []int32{1}, nil, 1},
		{"penalty forgets", Options{RepeatPenalty: 2, RepeatLast: 1}, []float32{1, 3, 2}, []int32{1, 0}, nil, 1},
		{"penalty reaches back 64", Options{RepeatPenalty: 2}, []float32{1, 3, 2}, append([]int32{1}, make([]int32, 63)...), nil, 2},
		{"and no further", Options{RepeatPenalty: 2}, []float32{1, 3, 2}, append([]int32{1}, make([]int32, 64)...), nil, 1},
		{"or over everything", Options{RepeatPenalty: 2, RepeatLast: -1}, []float32{1, 3, 2}, append([]int32{1}, make([]int32, 64)...), nil, 2},
		{"ids out of range", Options{RepeatPenalty: 2}, []float32{1, 3, 2}, []int32{-1, 3, 1 << 30}, nil, 1},
		{"temperature NaN is greedy", Options{Temperature: math.NaN()}, []float32{1, 3, 2}, nil, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.logits)
			if got := New(c.o).Pick(c.logits, c.recent, c.mask); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			for i := range before {
				if math.Float32bits(before[i]) != math.Float32bits(c.logits[i]) {
					t.Errorf("logit %d changed", i)
				}
			}
		})
	}
}

// drawn is the set of ids that 400 draws give.
func drawn(o Options, logits []float32, mask Mask) []int32 {
	s := New(o)
	seen := map[int32]bool{}
	for range 400 {
		seen[s.Pick(logits, nil, mask)] = true
	}
	var ids []int32
	for id := range seen {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func TestFilters(t *testing.T) {
	// Probabilities 0.1 0.4 0.2 0.3.
	p := []float32{float32(math.Log(0.1)), float32(math.Log(0.4)), float32(math.Log(0.2)), float32(math.Log(0.3))}
	for _, c := range []struct {
		name   string
		o      Options
		logits []float32
		mask   Mask
		want   []int32
	}{
		{"all", Options{Temperature: 1}, p, nil, []int32{0, 1, 2, 3}},
		{"top-k 2", Options{Temperature: 1, TopK: 2}, p, nil, []int32{1, 3}},
		{"top-k beyond the end", Options{Temperature: 1, TopK: 9}, p, nil, []int32{0, 1, 2, 3}},
		{"top-k takes the lower of equals", Options{Temperature: 1, TopK: 2}, []float32{0, 1, 1, 1}, nil, []int32{1, 2}},
		{"top-p 0.65 needs two", Options{Temperature: 1, TopP: 0.65}, p, nil, []int32{1, 3}},
		{"top-p 0.75 needs three", Options{Temperature: 1, TopP: 0.75}, p, nil, []int32{1, 2, 3}},
		{"top-p keeps one at least", Options{Temperature: 1, TopP: 1e-9}, p, nil, []int32{1}},
		{"top-p after top-k is of what is left", Options{Temperature: 1, TopK: 2, TopP: 0.55}, p, nil, []int32{1}},
		{"top-p is before temperature", Options{Temperature: 50, TopP: 0.65}, p, nil, []int32{1, 3}},
		{"min-p 0.6", Options{Temperature: 1, MinP: 0.6}, p, nil, []int32{1, 3}},
		{"min-p 1 keeps the best", Options{Temperature: 1, MinP: 1}, p, nil, []int32{1}},
		{"mask comes first", Options{Temperature: 1, TopK: 1}, p, only{0, 2}, []int32{2}},
		{"mask of nothing", Options{Temperature: 1}, p, only{}, []int32{None}},
		{"infinity wins", Options{Temperature: 1}, []float32{0, inf, 5, inf}, nil, []int32{1, 3}},
		{"infinity wins under top-p", Options{Temperature: 1, TopP: 0.9}, []float32{0, inf, 5, inf}, nil, []int32{1, 3}},
		{"NaN and minus infinity lose", Options{Temperature: 9, MinP: 0.0001}, []float32{nan, 0, ninf, 0}, nil, []int32{1, 3}},
		{"nothing to draw", Options{Temperature: 1, TopK: 2, TopP: 0.5}, []float32{nan, ninf}, nil, []int32{None}},
		{"cold", Options{Temperature: 1e-6}, p, nil, []int32{1}},
		{"bad options count as off", Options{Temperature: 1, TopK: -4, TopP: math.NaN(), MinP: 7, RepeatPenalty: math.Inf(1)}, p, nil, []int32{0, 1, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := drawn(c.o, c.logits, c.mask); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// The frequencies of many draws are the probabilities, within five standard deviations.
func TestFrequencies(t *testing.T) {
	logits := []float32{1, 2, 0.5, -1, 2.5}
	const n = 200_000
	for _, temperature := range []float64{0.5, 1, 2} {
		s := New(Options{Temperature: temperature, Seed: 7})
		count := make([]float64, len(logits))
		for range n {
			count[s.Pick(logits, nil, nil)]++
		}
		total := 0.0
		for _, v := range logits {
			total += math.Exp(float64(v) / temperature)
		}
		for id, v := range logits {
			p := math.Exp(float64(v)/temperature) / total
			if sd := math.Sqrt(n * p * (1 - p)); math.Abs(count[id]-n*p) > 5*sd {
				t.Errorf("temperature %g, token %d: %g of %d draws, expected %g", temperature, id, count[id], n, n*p)
			}
		}
	}
}

func TestSeed(t *testing.T) {
	logits := make([]float32, 500)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range logits {
		logits[i] = rnd.Float32() * 5
	}
	draws := func(seed uint64) (ids []int32) {
		s := New(Options{Temperature: 1, TopP: 0.95, Seed: seed})
		for range 50 {
			ids = append(ids, s.Pick(logits, ids, nil))
		}
		return ids
	}
	if !slices.Equal(draws(3), draws(3)) {
		t.Error("the same seed gives other tokens")
	}
	if slices.Equal(draws(3), draws(4)) {
		t.Error("another seed gives the same tokens")
	}
}

// top and topP agree with sorting everything, at sizes around their steps.
func TestSelectionMatchesSort(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 127, 128, 129, 1024, 5000} {
		list := make([]candidate, n)
		for i := range list {
			list[i] = candidate{int32(i), float32(rnd.IntN(40)) / 8} // many ties
		}
		sorted := slices.Clone(list)
		slices.SortFunc(sorted, compare)
		for _, k := range []int{1, 2, n/2 + 1, n} {
			if k <= n && !slices.Equal(top(slices.Clone(list), k), sorted[:k]) {
				t.Errorf("top %d of %d differs", k, n)
			}
		}
		total := 0.0
		for _, c := range sorted {
			total += math.Exp(float64(c.logit) - float64(sorted[0].logit))
		}
		for _, p := range []float64{0.1, 0.5, 0.9, 0.999} {
			sum, want := 0.0, 0
			for want < n && sum < p*total {
				sum += math.Exp(float64(sorted[want].logit) - float64(sorted[0].logit))
				want++
			}
			got := topP(slices.Clone(list), p)
			if len(got) < want-1 || len(got) > want+1 || !slices.Equal(got, sorted[:len(got)]) {
				t.Errorf("top-p %g of %d keeps %d, want %d", p, n, len(got), want)
			}
		}
	}
}

func TestLogProbs(t *testing.T) {
	logits := []float32{float32(math.Log(0.1)), nan, float32(math.Log(0.6)), ninf, float32(math.Log(0.3))}
	got := LogProbs(logits, 9)
	wantIDs := []int32{2, 4, 0, 1, 3}
	for i, want := range []float64{math.Log(0.6), math.Log(0.3), math.Log(0.1), math.Inf(-1), math.Inf(-1)} {
		if got[i].ID != wantIDs[i] || !(got[i].LogProb == want || math.Abs(got[i].LogProb-want) < 1e-6) {
			t.Errorf("%d: %+v, want %d %g", i, got[i], wantIDs[i], want)
		}
	}
	if len(LogProbs(logits, 2)) != 2 || LogProbs(logits, 0) != nil || LogProbs(nil, 3) != nil || LogProbs(logits, -1) != nil {
		t.Error("number of results")
	}
	for i, v := range []float32{1000, 0} { // no overflow
		if p := LogProb([]float32{1000, 0}, int32(i)); !(math.Abs(p-float64(v-1000)) <= 1e-9) {
			t.Errorf("large logits: %g", p)
		}
	}
	if p := LogProb([]float32{inf, 3, inf}, 2); !(math.Abs(p-math.Log(0.5)) <= 1e-9) {
		t.Errorf("infinite logits: %g", p)
	}
	if p := LogProb([]float32{inf, 3}, 1); !math.IsInf(p, -1) {
		t.Errorf("beside an infinite logit: %g", p)
	}
	for _, id := range []int32{-1, 5} {
		if p := LogProb(logits, id); !math.IsInf(p, -1) {
			t.Errorf("id %d: %g", id, p)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, o := range []Options{{}, {Temperature: 0.7, TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1.1, RepeatLast: -1}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []Options{{Temperature: -1}, {Temperature: math.NaN()}, {TopK: -1}, {TopP: 1.5}, {MinP: -0.1}, {RepeatPenalty: math.Inf(1)}} {
		if err := o.Validate(); err == nil {
			t.Errorf("%+v is valid", o)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	logits := make([]float32, 151936)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range logits {
		logits[i] = float32(rnd.NormFloat64() * 3)
	}
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"greedy", Options{}},
		{"default", Options{Temperature: 0.7, TopK: 40, TopP: 0.95, MinP: 0.05}},
		{"top-p only", Options{Temperature: 0.7, TopP: 0.9}},
		{"penalty", Options{RepeatPenalty: 1.1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := New(c.o)
			b.ReportAllocs()
			for b.Loop() {
				s.Pick(logits, []int32{1, 2, 3}, nil)
			}
		})
	}
}
