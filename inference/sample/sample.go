// Package sample picks the next token from the logits of a model.
//
// The steps and their order are those of llama.cpp: mask, repetition penalty, top-k,
// top-p, min-p, temperature, draw. A [Sampler] draws from its own seeded generator,
// so the same logits and options give the same tokens. It is for one goroutine.
package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// None is what [Sampler.Pick] returns if no token may be picked.
const None int32 = -1

// Options says how tokens are picked. The zero value picks the most likely one.
type Options struct {
	Temperature   float64 // 0: always the most likely token; TopK, TopP, MinP and Seed then have no effect
	TopK          int     // keep this many of the most likely; 0: all
	TopP          float64 // keep the fewest that reach this probability together; 0 or 1: all
	MinP          float64 // keep those at least this likely relative to the most likely; 0: all
	RepeatPenalty float64 // divides the logits of recent tokens (multiplies negative ones); 0 or 1: off
	RepeatLast    int     // how many recent tokens that concerns; 0: 64, negative: all
	Seed          uint64  // of the generator; 0 is a seed like any other
}

const defaultRepeatLast = 64

// Validate says which option makes no sense.
func (o Options) Validate() error {
	for _, c := range []struct {
		name    string
		value   float64
		atMost  float64
		explain string
	}{
		{"temperature", o.Temperature, 100, "0 to 100"},
		{"top-k", float64(o.TopK), math.MaxInt32, "0 or more"},
		{"top-p", o.TopP, 1, "0 to 1"},
		{"min-p", o.MinP, 1, "0 to 1"},
		{"repeat penalty", o.RepeatPenalty, 100, "0 to 100"},
	} {
		if !(c.value >= 0 && c.value <= c.atMost) { // also NaN
			return fmt.Errorf("sampling: %s %v is out of range, must be %s", c.name, c.value, c.explain)
		}
	}
	return nil
}

// Mask says which tokens may come.
type Mask interface {
	Allowed(id int32) bool
}

// Sampler picks tokens.
type Sampler struct {
	o    Options
	rnd  *rand.Rand
	work []float32 // penalised copy of the logits
	list []candidate
	exps []float64
}

// New returns a sampler. Options that [Options.Validate] refuses count as off.
func New(o Options) *Sampler {
	if !(o.Temperature > 0) || math.IsInf(o.Temperature, 0) {
		o.Temperature = 0
	}
	if !(o.TopP > 0 && o.TopP < 1) {
		o.TopP = 0
	}
	if !(o.MinP > 0 && o.MinP <= 1) {
		o.MinP = 0
	}
	if !(o.RepeatPenalty > 0) || math.IsInf(o.RepeatPenalty, 0) {
		o.RepeatPenalty = 1
	}
	o.TopK = max(o.TopK, 0)
	if o.RepeatLast == 0 {
		o.RepeatLast = defaultRepeatLast
	}
	return &Sampler{o: o, rnd: rand.New(rand.NewPCG(o.Seed, 0x9E3779B97F4A7C15))}
}

// Pick returns the id of the next token. logits holds one value for each token and is
// not changed; NaN counts as minus infinity. recent are the tokens so far, the last
// one last. mask may be nil. Of equal tokens the one with the lowest id is the more
// likely. The result is [None] if no token is allowed and above minus infinity.
func (s *Sampler) Pick(logits []float32, recent []int32, mask Mask) int32 {
	logits = s.penalise(logits, recent)
	if s.o.Temperature == 0 {
		return greedy(logits, mask)
	}
	return s.draw(logits, mask)
}

// penalise makes recent tokens less likely, in a copy.
func (s *Sampler) penalise(logits []float32, recent []int32) []float32 {
	if s.o.RepeatPenalty == 1 || len(recent) == 0 {
		return logits
	}
	if last := s.o.RepeatLast; last > 0 && len(recent) > last {
		recent = recent[len(recent)-last:]
	}
	s.work = append(s.work[:0], logits...)
	for _, id := range recent {
		if id < 0 || int(id) >= len(logits) {
			continue
		}
		// From the original, so that a token is punished once however often it came.
		if v := float64(logits[id]); v > 0 {
			s.work[id] = float32(v / s.o.RepeatPenalty)
		} else {
			s.work[id] = float32(v * s.o.RepeatPenalty)
		}
	}
	return s.work
}

func greedy(logits []float32, mask Mask) int32 {
	best, id := float32(math.Inf(-1)), None
	for i, v := range logits {
		if v > best {
			best, id = v, int32(i)
		}
	}
	// The winner is nearly always allowed, and asking the mask is the dear part.
	if id == None || mask == nil || mask.Allowed(id) {
		return id
	}
	best, id = float32(math.Inf(-1)), None
	for i, v := range logits {
		if v > best && mask.Allowed(int32(i)) {
			best, id = v, int32(i)
		}
	}
	return id
}
