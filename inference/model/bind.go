package model

import (
	"fmt"

	"atoll/inference/gguf"
	"atoll/kernels/quant"
)

// Description is what a file says about its model, read and checked without
// loading anything: every tensor that the architecture needs is there in a shape
// that fits and a format that is supported, and no tensor is left over.
type Description struct {
	Hyper       Hyper
	Parameters  int64 // values in all tensors
	WeightBytes int64 // of all tensors as they stand in the file
	Tied        bool  // the embedding is also the output head

	file   *gguf.File
	global map[place]gguf.Tensor
	layers []map[place]gguf.Tensor
}

// Describe reads and checks a model file.
func Describe(f *gguf.File) (*Description, error) {
	arch, err := find(f)
	if err != nil {
		return nil, err
	}
	h, err := arch.hyper(f)
	if err != nil {
		return nil, err
	}
	d := &Description{Hyper: h, file: f, global: map[place]gguf.Tensor{}}
	if err := d.bind(arch.tensors); err != nil {
		return nil, err
	}
	_, untied := d.global[outputHead]
	d.Tied = !untied
	return d, nil
}

// bind gives every tensor its place.
func (d *Description) bind(table []entry) error {
	if d.Hyper.Vocab == 0 { // no key: the embedding says
		if t, ok := d.file.Tensor("token_embd.weight"); ok && len(t.Dims) == 2 {
			if t.Dims[1] > maxContext {
				return d.file.TensorError(t.Name, "%d rows are more than %d", t.Dims[1], maxContext)
			}
			d.Hyper.Vocab = int(t.Dims[1])
		}
	}
	used := map[string]bool{}
	put := func(e entry, name string, into map[place]gguf.Tensor) error {
		t, ok := d.file.Tensor(name)
		if !ok {
			if e.optional {
				return nil
			}
			return d.file.TensorError(name, "missing; %s needs it: the file is incomplete or was written for something else", d.Hyper.Arch)
		}
		used[name] = true
		if e.place == ignored {
			return nil
		}
		if err := d.check(e, t); err != nil {
			return err
		}
		into[e.place] = t
		d.Parameters += int64(t.Elements())
		d.WeightBytes += int64(t.Size)
		return nil
	}
	for _, e := range table {
		if !e.inLayer() {
			if err := put(e, e.name, d.global); err != nil {
				return err
			}
		}
	}
	// Layers are added one by one, so that a large claimed number of layers ends at
	// the first one that the file lacks.
	for l := range d.Hyper.Layers {
		d.layers = append(d.layers, map[place]gguf.Tensor{})
		for _, e := range table {
			if e.inLayer() {
				if err := put(e, e.tensor(l), d.layers[l]); err != nil {
					return err
				}
			}
		}
	}
	for _, t := range d.file.Tensors() {
		if !used[t.Name] {
			return d.file.TensorError(t.Name, "not part of a %s model of %d layers; it may need a feature that this version lacks", d.Hyper.Arch, d.Hyper.Layers)
		}
	}
	return nil
}

// check compares a tensor's shape and format with its table entry.
func (d *Description) check(e entry, t gguf.Tensor) error {
	rows, cols := d.Hyper.size(e.rows), d.Hyper.size(e.cols)
	want, fits := fmt.Sprintf("[%d %d]", cols, rows), len(t.Dims) == 2 && t.Dims[0] == uint64(cols) && t.Dims[1] == uint64(rows)
	if e.vector() {
		want, fits = fmt.Sprintf("[%d]", cols), len(t.Dims) == 1 && t.Dims[0] == uint64(cols)
	}
	switch {
	case !fits:
		return d.file.TensorError(t.Name, "shape %v, want %s", t.Dims, want)
	case !t.Format.Known():
		_, err := t.Data()
		return err
	case cols%t.Format.BlockLen() != 0:
		return d.file.TensorError(t.Name, "rows of %d values do not divide into %v blocks of %d", cols, t.Format, t.Format.BlockLen())
	case e.vector() && t.Format != quant.F32 && t.Format != quant.F16 && t.Format != quant.BF16:
		return d.file.TensorError(t.Name, "format %v for a vector, want F32, F16 or BF16", t.Format)
	}
	return nil
}

// KVBytes returns the size of a key/value cache of n positions.
func (d *Description) KVBytes(n int) int64 {
	h := d.Hyper
	return int64(n) * int64(h.Layers) * int64(h.KVHeads) * int64(h.HeadDim) * 2 * 2
}

// ScratchBytes returns the size of the activations for batches of n tokens.
func (d *Description) ScratchBytes(n int) int64 {
	h := d.Hyper
	row := 4*int64(h.Embed) + 2*int64(h.size(queries)) + 2*int64(h.size(keyvals)) + 2*int64(h.FF) + 2*int64(h.Rope.Dims)
	return 4 * (int64(n)*row + 2*int64(h.Vocab))
}
