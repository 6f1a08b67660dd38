// Package model turns the tensors of a GGUF file into a decoder that runs on a
// [kernels.Backend].
//
// [Describe] reads and checks a file, [Load] makes its weights ready, and
// [Model.Forward] evaluates tokens as the continuation of a [kvcache.Sequence].
// Hyper-parameters ([Hyper]), weights and scratch memory are kept apart: the first
// two never change after loading, the last is allocated once.
//
// A Model runs one evaluation at a time; its owner sees to that.
package model

import (
	"context"
	"fmt"

	"atoll/inference/gguf"
	"atoll/inference/kvcache"
	"atoll/kernels"
	"atoll/kernels/quant"
)

// DefaultBatch is the number of tokens that Forward evaluates at once. Weights are
// read once a batch, so larger ones are faster up to the point where activations
// leave the processor's caches.
const DefaultBatch = 256

// Options tells how to load. The zero value is ready to use.
type Options struct {
	// Batch is the largest number of tokens evaluated at once; 0 means DefaultBatch.
	Batch int
	// Progress, if not nil, is told how many bytes of weights are ready.
	Progress func(done, total int64)
}

// Model is a loaded model.
type Model struct {
	hyper   Hyper
	backend kernels.Backend
	weights weights
	state   state
	bytes   int64
}

// weights are the tensors in the backend's hands. They do not change.
type weights struct {
	file    *gguf.File
	embed   gguf.Tensor // rows are unpacked on demand, from the file
	head    [1]kernels.Weight
	norm    kernels.Buffer // Embed
	layers  []layer
	ropeDiv []float32 // nil, or a divisor of each pair's frequency
}

// layer holds the weights of one block.
type layer struct {
	attnNorm kernels.Buffer    // Embed
	qkv      [3]kernels.Weight // Embed -> queries, keyvals, keyvals
	out      [1]kernels.Weight // queries -> Embed
	ffnNorm  kernels.Buffer    // Embed
	gateUp   [2]kernels.Weight // Embed -> FF, FF
	down     [1]kernels.Weight // FF -> Embed
}

// Load describes f and hands its weights to b. Pages of the file that the backend
// has copied are given back to the operating system, so that resident memory
// stays near the size of the packed weights. f must stay open while the model is
// in use.
func Load(ctx context.Context, f *gguf.File, b kernels.Backend, opts Options) (*Model, error) {
	d, err := Describe(f)
	if err != nil {
		return nil, err
	}
	return d.Load(ctx, b, opts)
}

// Load hands the weights of a described file to b.
func (d *Description) Load(ctx context.Context, b kernels.Backend, opts Options) (*Model, error) {
	if opts.Batch <= 0 {
		opts.Batch = DefaultBatch
	}
	l := &loader{d: d, b: b, progress: opts.Progress}
	m := &Model{hyper: d.Hyper, backend: b}
	m.weights = weights{file: d.file, embed: d.global[tokenEmbedding]}
	w := &m.weights
	if t, ok := d.global[ropeFactors]; ok {
		w.ropeDiv = l.vector(t)
		for i, v := range w.ropeDiv {
			if !(v > 0) && l.err == nil {
				l.err = d.file.TensorError(t.Name, "frequency factor %d is %v, want a positive number", i, v)
			}
		}
	}
	w.norm = l.buffer(d.global[outputNorm])
	head, ok := d.global[outputHead]
	if !ok {
		head = w.embed
	}
	w.head[0] = l.matrix(head, gguf.Tensor{})
	for _, t := range d.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.layers = append(w.layers, layer{
			attnNorm: l.buffer(t[attnNorm]),
			qkv: [3]kernels.Weight{
				l.matrix(t[attnQ], t[attnQBias]), l.matrix(t[attnK], t[attnKBias]), l.matrix(t[attnV], t[attnVBias]),
			},
			out:     [1]kernels.Weight{l.matrix(t[attnOut], t[attnOutBias])},
			ffnNorm: l.buffer(t[ffnNorm]),
			gateUp:  [2]kernels.Weight{l.matrix(t[ffnGate], t[ffnGateBias]), l.matrix(t[ffnUp], t[ffnUpBias])},
			down:    [1]kernels.Weight{l.matrix(t[ffnDown], t[ffnDownBias])},
		})
		if l.err != nil {
			return nil, l.err
		}
	}
	if l.err != nil {
		return nil, l.err
	}
	m.bytes = l.resident
	if err := m.newState(opts.Batch); err != nil {
		return nil, fmt.Errorf("allocate activations: %w", err)
	}
	return m, nil
}

// Hyper returns the hyper-parameters.
func (m *Model) Hyper() Hyper { return m.hyper }

// WeightBytes returns the size of the matrices in memory: the backend's own copies,
// and those that it uses in place in the file's mapping.
func (m *Model) WeightBytes() int64 { return m.bytes }

// Batch returns the largest number of tokens evaluated at once.
func (m *Model) Batch() int { return m.state.batch }

// NewCache returns a key/value cache of at least n positions.
func (m *Model) NewCache(n int) (*kvcache.Cache, error) {
	return kvcache.New(m.backend, kernels.KVShape{
		Layers: m.hyper.Layers, KVHeads: m.hyper.KVHeads, HeadDim: m.hyper.HeadDim, Pages: kvcache.PagesFor(n),
	})
}

// loader makes tensors ready and keeps the first error.
type loader struct {
	d        *Description
	b        kernels.Backend
	progress func(done, total int64)
	done     int64
	resident int64
	err      error
}

// vector unpacks a tensor; one without a name gives nil.
func (l *loader) vector(t gguf.Tensor) []float32 {
	if t.Name == "" || l.err != nil {
		return nil
	}
	data, err := t.Data()
	if err != nil {
		l.err = err
		return nil
	}
	v := make([]float32, t.Dims[0])
	quant.Dequantize(t.Format, v, data)
	l.advance(t)
	return v
}

func (l *loader) buffer(t gguf.Tensor) kernels.Buffer {
	v := l.vector(t)
	if l.err != nil {
		return nil
	}
	b, err := l.b.NewBuffer(len(v))
	if err != nil {
		l.err = fmt.Errorf("load tensor %s: %w", t.Name, err)
		return nil
	}
	l.b.Write(b, 0, v)
	return b
}

func (l *loader) matrix(t, bias gguf.Tensor) kernels.Weight {
	bv := l.vector(bias)
	if l.err != nil {
		return nil
	}
	data, err := t.Data()
	if err != nil {
		l.err = err
		return nil
	}
	w, err := l.b.NewWeight(kernels.Matrix{
		Name: t.Name, Format: t.Format, Rows: int(t.Dims[1]), Cols: int(t.Dims[0]), Data: data, Bias: bv,
	})
	if err != nil {
		l.err = fmt.Errorf("load tensor %s: %w", t.Name, err)
		return nil
	}
	if n := w.Bytes(); n > 0 {
		l.resident += n
		l.d.file.Release(t)
	} else {
		l.resident += int64(t.Size)
	}
	l.advance(t)
	return w
}

func (l *loader) advance(t gguf.Tensor) {
	l.done += int64(t.Size)
	if l.progress != nil {
		l.progress(min(l.done, l.d.WeightBytes), l.d.WeightBytes)
	}
}
