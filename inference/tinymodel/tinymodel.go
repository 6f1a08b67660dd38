// Package tinymodel writes model files of a few hundred kilobytes with random
// weights, for tests that need an engine and not its wisdom. The same options give
// the same bytes.
//
// The vocabulary is a real byte-level BPE one: all 256 bytes, merges learnt from a
// short word list, the control tokens of ChatML and the user-defined tokens of
// Hermes tool calls. What such a model says is noise: any token may come,
// control tokens and halves of characters included.
package tinymodel

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"atoll/inference/gguf"
	"atoll/kernels/quant"
)

// Options describes a model. The zero value is a qwen2 model in F32 with the sizes
// given below.
type Options struct {
	Arch   string       // "qwen2" (if empty) or "llama"
	Format quant.Format // of all matrices; zero is F32
	// FormatOf gives the format of a matrix by name where it is not nil, for files
	// of mixed formats.
	FormatOf func(name string) quant.Format

	Layers  int // blocks; 2 if zero
	Embed   int // width of the residual stream; 64 if zero, or the block length of a larger format
	FF      int // width of the feed-forward layer; twice Embed if zero
	Heads   int // query heads; 4 if zero
	KVHeads int // key/value heads; 2 if zero
	Context int // trained context length; 1024 if zero

	Tied        bool   // the embedding is also the output head
	RopeFactors bool   // adds rope_freqs.weight, as Llama 3 has it (llama only)
	Pre         string // pre-tokenizer; "qwen2" if empty
	Template    string // chat template; ChatML with Hermes tool calls if empty
	VocabOnly   bool   // no tensors
	Seed        uint64 // of the weights
}

func (o Options) withDefaults() Options {
	def := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	if o.Arch == "" {
		o.Arch = "qwen2"
	}
	if o.Pre == "" {
		o.Pre = "qwen2"
	}
	if o.Template == "" {
		o.Template = ChatML
	}
	if o.FormatOf == nil {
		format := o.Format
		o.FormatOf = func(string) quant.Format { return format }
	}
	def(&o.Layers, 2)
	def(&o.Embed, max(64, o.Format.BlockLen()))
	def(&o.FF, 2*o.Embed)
	def(&o.Heads, 4)
	def(&o.KVHeads, 2)
	def(&o.Context, 1024)
	return o
}

// Write writes the model.
func Write(w io.Writer, o Options) error {
	pairs, tensors, err := Parts(o)
	if err != nil {
		return err
	}
	return gguf.Write(w, pairs, tensors)
}

// Bytes returns the model as it would stand in a file.
func Bytes(o Options) ([]byte, error) {
	var b bytes.Buffer
	err := Write(&b, o)
	return b.Bytes(), err
}

// Parts returns what [Write] writes, so that a test can change or drop some of it
// before it calls [gguf.Write].
func Parts(o Options) ([]gguf.Pair, []gguf.Blob, error) {
	if o.Arch != "" && o.Arch != "qwen2" && o.Arch != "llama" {
		return nil, nil, fmt.Errorf("tiny model: architecture %s is not known", o.Arch)
	}
	if !o.Format.Known() {
		return nil, nil, fmt.Errorf("tiny model: format %s is not known", o.Format)
	}
	o = o.withDefaults()
	if o.Embed%o.Heads != 0 || o.Embed/o.Heads%2 != 0 || o.Heads%o.KVHeads != 0 {
		return nil, nil, fmt.Errorf("tiny model: %d values do not divide into %d heads of even size, sharing %d", o.Embed, o.Heads, o.KVHeads)
	}
	v := makeVocabulary()
	a := o.Arch + "."
	pairs := []gguf.Pair{
		{Key: "general.architecture", Value: o.Arch},
		{Key: "general.type", Value: "model"},
		{Key: "general.name", Value: "tiny " + o.Arch},
		{Key: a + "block_count", Value: uint32(o.Layers)},
		{Key: a + "context_length", Value: uint32(o.Context)},
		{Key: a + "embedding_length", Value: uint32(o.Embed)},
		{Key: a + "feed_forward_length", Value: uint32(o.FF)},
		{Key: a + "attention.head_count", Value: uint32(o.Heads)},
		{Key: a + "attention.head_count_kv", Value: uint32(o.KVHeads)},
		{Key: a + "attention.layer_norm_rms_epsilon", Value: float32(1e-6)},
		{Key: a + "rope.freq_base", Value: float32(10000)},
	}
	if o.Arch == "llama" {
		pairs = append(pairs,
			gguf.Pair{Key: "llama.vocab_size", Value: uint32(len(v.tokens))},
			gguf.Pair{Key: "llama.rope.dimension_count", Value: uint32(o.Embed / o.Heads)})
	}
	pairs = append(pairs,
		gguf.Pair{Key: "tokenizer.ggml.model", Value: "gpt2"},
		gguf.Pair{Key: "tokenizer.ggml.pre", Value: o.Pre},
		gguf.Pair{Key: "tokenizer.ggml.tokens", Value: v.tokens},
		gguf.Pair{Key: "tokenizer.ggml.token_type", Value: v.types},
		gguf.Pair{Key: "tokenizer.ggml.merges", Value: v.merges},
		gguf.Pair{Key: "tokenizer.ggml.bos_token_id", Value: v.id("<|endoftext|>")},
		gguf.Pair{Key: "tokenizer.ggml.eos_token_id", Value: v.id("<|im_end|>")},
		gguf.Pair{Key: "tokenizer.ggml.padding_token_id", Value: v.id("<|endoftext|>")},
		gguf.Pair{Key: "tokenizer.ggml.add_bos_token", Value: false},
		gguf.Pair{Key: "tokenizer.chat_template", Value: o.Template},
		gguf.Pair{Key: "general.quantization_version", Value: uint32(2)})
	if o.VocabOnly {
		return pairs, nil, nil
	}
	m := maker{o: o, rnd: rand.New(rand.NewPCG(o.Seed, 0x6174_6f6c_6c21))}
	m.tensors(len(v.tokens))
	return pairs, m.list, m.err
}

// maker collects random tensors.
type maker struct {
	o    Options
	rnd  *rand.Rand
	list []gguf.Blob
	err  error
}

func (m *maker) tensors(vocab int) {
	o := m.o
	headDim := o.Embed / o.Heads
	queries, keys := headDim*o.Heads, headDim*o.KVHeads
	if o.Tied {
		m.matrix("token_embd.weight", o.Embed, vocab, 3) // as a head
	} else {
		// Looked up, not multiplied with: unit variance of its own.
		m.matrix("token_embd.weight", o.Embed, vocab, math.Sqrt(float64(o.Embed)))
	}
	m.gain("output_norm.weight", o.Embed)
	if !o.Tied {
		m.matrix("output.weight", o.Embed, vocab, 3)
	}
	if o.RopeFactors && o.Arch == "llama" {
		m.vector("rope_freqs.weight", headDim/2, func() float32 { return 1 + 7*m.rnd.Float32() })
	}
	for i := range o.Layers {
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s", i, s) }
		m.gain(name("attn_norm.weight"), o.Embed)
		m.matrix(name("attn_q.weight"), o.Embed, queries, 1.5)
		m.matrix(name("attn_k.weight"), o.Embed, keys, 1.5)
		m.matrix(name("attn_v.weight"), o.Embed, keys, 1)
		if o.Arch == "qwen2" {
			m.vector(name("attn_q.bias"), queries, m.normal)
			m.vector(name("attn_k.bias"), keys, m.normal)
			m.vector(name("attn_v.bias"), keys, m.normal)
		}
		m.matrix(name("attn_output.weight"), queries, o.Embed, 1)
		m.gain(name("ffn_norm.weight"), o.Embed)
		m.matrix(name("ffn_gate.weight"), o.Embed, o.FF, 1)
		m.matrix(name("ffn_up.weight"), o.Embed, o.FF, 1)
		m.matrix(name("ffn_down.weight"), o.FF, o.Embed, 1)
	}
}

func (m *maker) normal() float32 { return float32(m.rnd.NormFloat64()) }

func (m *maker) gain(name string, n int) {
	m.vector(name, n, func() float32 { return 1 + 0.1*m.normal() })
}

func (m *maker) vector(name string, n int, next func() float32) {
	m.add(name, quant.F32, []uint64{uint64(n)}, n, next)
}

// matrix adds rows of cols values whose products with a vector of unit variance
// have the standard deviation spread.
func (m *maker) matrix(name string, cols, rows int, spread float64) {
	scale := float32(spread / math.Sqrt(float64(cols)))
	m.add(name, m.o.FormatOf(name), []uint64{uint64(cols), uint64(rows)}, cols*rows, func() float32 { return scale * m.normal() })
}

func (m *maker) add(name string, format quant.Format, dims []uint64, n int, next func() float32) {
	values := make([]float32, n)
	for i := range values {
		values[i] = next()
	}
	if m.err != nil {
		return
	}
	if !format.Known() || int(dims[0])%format.BlockLen() != 0 {
		m.err = fmt.Errorf("tiny model: tensor %s: rows of %d values do not fit format %s", name, dims[0], format)
		return
	}
	data := make([]byte, n/format.BlockLen()*format.BlockBytes())
	quant.Quantize(format, data, values)
	m.list = append(m.list, gguf.Blob{Name: name, Format: format, Dims: dims, Data: data})
}
