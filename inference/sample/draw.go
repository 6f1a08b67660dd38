package sample

import (
	"cmp"
	"math"
	"slices"
)

// candidate is a token that may be drawn.
type candidate struct {
	id    int32
	logit float32
}

// before orders candidates: likely ones first, of equals the lower id.
func before(a, b candidate) bool {
	return a.logit > b.logit || a.logit == b.logit && a.id < b.id
}

func compare(a, b candidate) int {
	if a.logit != b.logit {
		return cmp.Compare(b.logit, a.logit)
	}
	return cmp.Compare(a.id, b.id)
}

// draw filters the candidates and draws one.
func (s *Sampler) draw(logits []float32, mask Mask) int32 {
	list := s.list[:0]
	for i, v := range logits {
		if v > float32(math.Inf(-1)) && (mask == nil || mask.Allowed(int32(i))) { // NaN is not
			list = append(list, candidate{int32(i), v})
		}
	}
	s.list = list
	if len(list) == 0 {
		return None
	}
	if k := s.o.TopK; k > 0 && k < len(list) {
		list = top(list, k)
	}
	if s.o.TopP > 0 {
		list = topP(list, s.o.TopP)
	}
	best := list[0]
	for _, c := range list {
		if before(c, best) {
			best = c
		}
	}
	if s.o.MinP > 0 {
		least := float64(best.logit) + math.Log(s.o.MinP)
		list = slices.DeleteFunc(list, func(c candidate) bool { return float64(c.logit) < least && c != best })
	}
	total := 0.0
	s.exps = s.exps[:0]
	for _, c := range list {
		e := weight(c.logit, best.logit, s.o.Temperature)
		s.exps = append(s.exps, e)
		total += e
	}
	at := s.rnd.Float64() * total
	for i, e := range s.exps {
		if at -= e; at < 0 {
			return list[i].id
		}
	}
	return best.id // rounding has eaten the last of the total
}

// weight is exp((logit-best)/temperature), 1 for the best also where it is infinite.
func weight(logit, best float32, temperature float64) float64 {
	if logit == best {
		return 1
	}
	return math.Exp((float64(logit) - float64(best)) / temperature)
}

// top moves the k first candidates to the front, sorted, and returns them.
func top(list []candidate, k int) []candidate {
	// A heap of k with the last of them at its root.
	heap := list[:k]
	down := func(i int) {
		for {
			child := 2*i + 1
			if child >= k {
				return
			}
			if child+1 < k && before(heap[child], heap[child+1]) {
				child++
			}
			if !before(heap[i], heap[child]) {
				return
			}
			heap[i], heap[child] = heap[child], heap[i]
			i = child
		}
	}
	for i := k/2 - 1; i >= 0; i-- {
		down(i)
	}
	for i := k; i < len(list); i++ {
		if before(list[i], heap[0]) {
			heap[0], list[i] = list[i], heap[0]
			down(0)
		}
	}
	slices.SortFunc(heap, compare)
	return heap
}

// topP keeps the fewest candidates, the likely ones first, whose probabilities add
// up to p. To sort a whole vocabulary for the few that count would take longer than
// a layer of a small model: more are sorted only when those before do not suffice.
func topP(list []candidate, p float64) []candidate {
	best := list[0].logit
	for _, c := range list {
		best = max(best, c.logit)
	}
	total := 0.0
	for _, c := range list {
		total += weight(c.logit, best, 1)
	}
	for k := 128; ; k *= 8 {
		k = min(k, len(list))
		sum := 0.0
		for i, c := range top(list, k) {
			if sum += weight(c.logit, best, 1); sum >= p*total {
				return list[:i+1]
			}
		}
		if k == len(list) {
			return list
		}
	}
}
