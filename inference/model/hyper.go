package model

import (
	"fmt"
	"math"

	"atoll/inference/gguf"
	"atoll/kernels"
)

// Hyper holds the hyper-parameters of a dense decoder. All of them come from the
// file and are checked against each other by the architecture's reader.
type Hyper struct {
	Arch string // general.architecture
	Name string // general.name, may be empty

	Vocab   int // tokens in the vocabulary: rows of the embedding
	Layers  int
	Embed   int // width of the residual stream
	FF      int // width of the feed-forward part
	Heads   int // query heads
	KVHeads int // key and value heads; divides Heads
	HeadDim int // values per head
	Context int // positions the model was trained for

	Eps  float32 // of the RMS norms
	Rope Rope
}

// Rope describes the rotary position embedding.
type Rope struct {
	Kind kernels.RopeKind
	Dims int     // rotated values per head, even, at most HeadDim
	Base float64 // frequency base

	// Scaling is "none", "linear" or "yarn".
	Scaling string
	// Factor stretches positions, 1 without scaling.
	Factor float64
	// OriginalContext is the context before stretching (yarn).
	OriginalContext int
	// Attention scales the rotated queries and keys (yarn); 1 otherwise.
	Attention float64
}

// Bounds of what a file may claim. They keep products of two sizes far inside an
// int and turn absurd values into errors before anything is allocated.
const (
	maxLayers  = 1 << 10
	maxWidth   = 1 << 20
	maxHeads   = 1 << 12
	maxContext = 1 << 24
)

// readDense reads the keys that all dense decoders share. Every key of the
// architecture's own prefix is either read here or named in known; another one is
// an error, since it may change what the model computes.
func readDense(f *gguf.File, arch string, kind kernels.RopeKind, known ...string) (Hyper, error) {
	k := newKeys(f, arch)
	h := Hyper{Arch: arch, Name: k.name()}
	h.Layers = k.count("block_count", 1, maxLayers)
	h.Embed = k.count("embedding_length", 1, maxWidth)
	h.FF = k.count("feed_forward_length", 1, maxWidth)
	h.Heads = k.count("attention.head_count", 1, maxHeads)
	h.KVHeads = k.countOr("attention.head_count_kv", h.Heads, 1, maxHeads)
	h.Context = k.count("context_length", 1, maxContext)
	h.Eps = float32(k.float("attention.layer_norm_rms_epsilon", 0, false, 0, 1))
	if k.err == nil && h.Heads%h.KVHeads != 0 {
		k.fail("attention.head_count_kv", "%d key/value heads do not divide %d query heads", h.KVHeads, h.Heads)
	}

	h.HeadDim = k.countOr("attention.key_length", 0, 1, maxWidth)
	if k.err == nil && h.HeadDim == 0 {
		if h.Embed%h.Heads != 0 {
			k.fail("attention.head_count", "%d heads do not divide the embedding length %d, and attention.key_length is absent", h.Heads, h.Embed)
		} else {
			h.HeadDim = h.Embed / h.Heads
		}
	}
	if v := k.countOr("attention.value_length", h.HeadDim, 1, maxWidth); k.err == nil && v != h.HeadDim {
		k.fail("attention.value_length", "value length %d differs from the key length %d, which is not supported", v, h.HeadDim)
	}
	if k.err == nil && h.Heads*h.HeadDim > maxWidth {
		k.fail("attention.key_length", "%d heads of %d values are more than %d", h.Heads, h.HeadDim, maxWidth)
	}

	h.Rope = k.rope(kind, h.HeadDim, h.Context)
	h.Vocab = k.countOr("vocab_size", 0, 1, maxContext) // the embedding's rows decide
	for _, name := range []string{"expert_count", "expert_used_count"} {
		if n := k.countOr(name, 0, 0, maxWidth); k.err == nil && n > 0 {
			k.fail(name, "a mixture of %d experts is not supported; use a dense model", n)
		}
	}
	if w := k.countOr("attention.sliding_window", 0, 0, maxContext); k.err == nil && w > 0 && w < h.Context {
		k.fail("attention.sliding_window", "attention windows of %d positions are not supported", w)
	}
	k.rest(known)
	return h, k.err
}

// rope reads the rotary embedding.
func (k *keys) rope(kind kernels.RopeKind, headDim, context int) Rope {
	r := Rope{Kind: kind, Scaling: "none", Factor: 1, Attention: 1, OriginalContext: context}
	r.Dims = k.countOr("rope.dimension_count", headDim, 1, maxWidth)
	if k.err == nil && (r.Dims%2 != 0 || r.Dims > headDim) {
		k.fail("rope.dimension_count", "%d is not an even number of at most %d, the values of a head", r.Dims, headDim)
	}
	r.Base = k.float("rope.freq_base", 10000, true, 0, math.MaxFloat32)
	// The older key of a linear factor; the newer ones win.
	if f := k.float("rope.scale_linear", 1, true, 0, maxContext); f != 1 {
		r.Scaling, r.Factor = "linear", f
	}
	if s := k.text("rope.scaling.type", ""); s != "" {
		r.Scaling = s
	}
	r.Factor = k.float("rope.scaling.factor", r.Factor, true, 0, maxContext)
	r.OriginalContext = k.countOr("rope.scaling.original_context_length", context, 1, maxContext)
	attention := k.float("rope.scaling.attn_factor", 1, true, 0, 1e6)
	k.bool("rope.scaling.finetuned")
	switch r.Scaling {
	case "none":
		r.Factor = 1
	case "linear":
	case "yarn":
		r.Attention = attention * (1 + 0.1*math.Log(math.Max(r.Factor, 1)))
	default:
		k.fail("rope.scaling.type", "%q is not supported; supported: none, linear, yarn", r.Scaling)
	}
	return r
}

// String gives the sizes in one line.
func (h Hyper) String() string {
	return fmt.Sprintf("%s: %d layers, width %d, %d/%d heads of %d, feed-forward %d, vocabulary %d, context %d",
		h.Arch, h.Layers, h.Embed, h.Heads, h.KVHeads, h.HeadDim, h.FF, h.Vocab, h.Context)
}
