package sample

import "math"

// TokenLogProb is a token with the natural logarithm of its probability.
type TokenLogProb struct {
	ID      int32
	LogProb float64
}

// LogProbs returns the n most likely tokens, the most likely first, of equals the
// lowest id. Probabilities are over all logits; NaN counts as minus infinity.
func LogProbs(logits []float32, n int) []TokenLogProb {
	list := make([]candidate, 0, len(logits))
	for i, v := range logits {
		if v != v {
			v = float32(math.Inf(-1))
		}
		list = append(list, candidate{int32(i), v})
	}
	n = min(max(n, 0), len(list))
	if n == 0 {
		return nil
	}
	norm := logSum(logits)
	out := make([]TokenLogProb, n)
	for i, c := range top(list, n) {
		out[i] = TokenLogProb{c.id, logProb(c.logit, norm)}
	}
	return out
}

// LogProb returns the natural logarithm of the probability of one token, minus
// infinity for an id out of range.
func LogProb(logits []float32, id int32) float64 {
	if id < 0 || int(id) >= len(logits) {
		return math.Inf(-1)
	}
	return logProb(logits[id], logSum(logits))
}

// norm is the logarithm of the sum of exponentials as best + log(sum), in two parts
// so that infinite logits do not become NaN.
type norm struct {
	best float32
	log  float64
}

func logSum(logits []float32) norm {
	best := float32(math.Inf(-1))
	for _, v := range logits {
		if v > best {
			best = v
		}
	}
	sum := 0.0
	for _, v := range logits {
		if v == v {
			sum += weight(v, best, 1)
		}
	}
	return norm{best, math.Log(sum)}
}

func logProb(logit float32, n norm) float64 {
	switch {
	case logit != logit || math.IsInf(float64(logit), -1):
		return math.Inf(-1)
	case logit == n.best:
		return -n.log
	}
	return float64(logit) - float64(n.best) - n.log
}
