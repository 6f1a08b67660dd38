package model

import (
	"fmt"
	"strconv"
	"strings"
)

// place is what a tensor is for.
type place int

const (
	tokenEmbedding place = iota
	outputNorm
	outputHead
	ropeFactors
	attnNorm
	attnQ
	attnK
	attnV
	attnQBias
	attnKBias
	attnVBias
	attnOut
	attnOutBias
	ffnNorm
	ffnGate
	ffnUp
	ffnDown
	ffnGateBias
	ffnUpBias
	ffnDownBias
	ignored
)

// dim is a size of a tensor by its meaning.
type dim int

const (
	one      dim = iota // a vector has one row
	vocab               // Hyper.Vocab
	embed               // Hyper.Embed
	queries             // Heads * HeadDim
	keyvals             // KVHeads * HeadDim
	ff                  // Hyper.FF
	ropeHalf            // Rope.Dims / 2
)

// size returns the value of d.
func (h *Hyper) size(d dim) int {
	switch d {
	case one:
		return 1
	case vocab:
		return h.Vocab
	case embed:
		return h.Embed
	case queries:
		return h.Heads * h.HeadDim
	case keyvals:
		return h.KVHeads * h.HeadDim
	case ff:
		return h.FF
	case ropeHalf:
		return h.Rope.Dims / 2
	}
	panic(fmt.Sprintf("BUG: dimension %d", d))
}

// entry is a row of an architecture's tensor table. In name, # stands for the
// number of the layer. A weight has rows outputs and cols inputs; the file stores
// the inputs of one output together.
type entry struct {
	name       string
	place      place
	rows, cols dim
	optional   bool
}

// inLayer reports whether the entry exists once a layer.
func (e entry) inLayer() bool { return strings.Contains(e.name, "#") }

// tensor returns the name in layer l.
func (e entry) tensor(l int) string { return strings.Replace(e.name, "#", strconv.Itoa(l), 1) }

// vector reports whether the tensor has one dimension.
func (e entry) vector() bool { return e.rows == one }
