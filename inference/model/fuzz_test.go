package model

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"atoll/inference/gguf"
	"atoll/kernels/quant"
	"atoll/kernels/ref"
)

// micro is the smallest model of an architecture: one layer of width 4, four tokens.
func micro(arch string) []byte {
	tensors := func() (list []gguf.Blob) {
		add := func(name string, dims ...uint64) {
			n := uint64(1)
			for _, d := range dims {
				n *= d
			}
			values := make([]float32, n)
			for i := range values {
				values[i] = float32(i%5)/4 - 0.3
			}
			data := make([]byte, 4*n)
			quant.Quantize(quant.F32, data, values)
			list = append(list, gguf.Blob{Name: name, Format: quant.F32, Dims: dims, Data: data})
		}
		add("token_embd.weight", 4, 4)
		add("output_norm.weight", 4)
		add("blk.0.attn_norm.weight", 4)
		add("blk.0.attn_q.weight", 4, 4)
		add("blk.0.attn_k.weight", 4, 2)
		add("blk.0.attn_v.weight", 4, 2)
		if arch == "qwen2" {
			add("blk.0.attn_q.bias", 4)
			add("blk.0.attn_k.bias", 2)
			add("blk.0.attn_v.bias", 2)
		}
		add("blk.0.attn_output.weight", 4, 4)
		add("blk.0.ffn_norm.weight", 4)
		add("blk.0.ffn_gate.weight", 4, 4)
		add("blk.0.ffn_up.weight", 4, 4)
		add("blk.0.ffn_down.weight", 4, 4)
		return list
	}
	pairs := []gguf.Pair{
		{Key: "general.architecture", Value: arch},
		{Key: arch + ".block_count", Value: uint32(1)},
		{Key: arch + ".context_length", Value: uint32(64)},
		{Key: arch + ".embedding_length", Value: uint32(4)},
		{Key: arch + ".feed_forward_length", Value: uint32(4)},
		{Key: arch + ".attention.head_count", Value: uint32(2)},
		{Key: arch + ".attention.head_count_kv", Value: uint32(1)},
		{Key: arch + ".attention.key_length", Value: uint32(2)},
		{Key: arch + ".attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
		{Key: arch + ".rope.dimension_count", Value: uint32(2)},
		{Key: arch + ".rope.freq_base", Value: float32(10000)},
		{Key: arch + ".rope.scaling.type", Value: "yarn"},
		{Key: arch + ".rope.scaling.factor", Value: float32(2)},
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, pairs, tensors()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// FuzzDescribe: whatever a file claims, it is refused with an error of the file or it
// loads and evaluates without a panic.
func FuzzDescribe(f *testing.F) {
	f.Add(micro("llama"))
	f.Add(micro("qwen2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := gguf.FromBytes("fuzz.gguf", data)
		if err != nil {
			return
		}
		d, err := Describe(file)
		if err != nil {
			var fault *gguf.Error
			if !errors.As(err, &fault) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		h := d.Hyper
		if d.KVBytes(16) > 1<<20 || d.ScratchBytes(4) > 1<<20 || d.WeightBytes > 1<<20 {
			return
		}
		b := ref.New(ref.Options{Threads: 1})
		defer b.Close()
		m, err := d.Load(context.Background(), b, Options{Batch: 4})
		if err != nil {
			return
		}
		c, err := m.NewCache(16)
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		err = m.Forward(context.Background(), c.NewSequence(), []int32{0, int32(h.Vocab - 1), 0, 0, 0}, Want{From: 3, Row: func(_ int, l []float32) error {
			rows++
			if len(l) != h.Vocab {
				t.Errorf("%d logits for a vocabulary of %d", len(l), h.Vocab)
			}
			return nil
		}})
		if err != nil || rows != 2 {
			t.Errorf("%d rows, %v", rows, err)
		}
	})
}

// TestMicro: the smallest models evaluate, so that the fuzz target begins with files
// that pass every check.
func TestMicro(t *testing.T) {
	for _, arch := range Architectures() {
		f, err := gguf.FromBytes("micro.gguf", micro(arch))
		if err != nil {
			t.Fatal(err)
		}
		m, c := load(t, f, 4, 16)
		seq := c.NewSequence()
		err = m.Forward(context.Background(), seq, []int32{0, 1, 2, 3, 0}, Want{Row: func(_ int, l []float32) error {
			for _, v := range l {
				if v != v || math.IsInf(float64(v), 0) {
					t.Errorf("%s: logits %v", arch, l)
				}
			}
			return nil
		}})
		if err != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
}
