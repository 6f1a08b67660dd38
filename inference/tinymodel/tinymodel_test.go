package tinymodel

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"atoll/inference/gguf"
	"atoll/kernels/quant"
)

func TestEveryFormat(t *testing.T) {
	for _, arch := range []string{"llama", "qwen2"} {
		for _, format := range []quant.Format{quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K} {
			t.Run(fmt.Sprint(arch, " ", format), func(t *testing.T) {
				data, err := Bytes(Options{Arch: arch, Format: format, Layers: 1})
				if err != nil {
					t.Fatal(err)
				}
				again, err := Bytes(Options{Arch: arch, Format: format, Layers: 1})
				if err != nil || !bytes.Equal(data, again) {
					t.Error("the same options give other bytes", err)
				}
				other, err := Bytes(Options{Arch: arch, Format: format, Layers: 1, Seed: 1})
				if err != nil || bytes.Equal(data, other) {
					t.Error("another seed gives the same bytes", err)
				}
				if len(data) > 1<<20 {
					t.Errorf("%d bytes", len(data))
				}
				f, err := gguf.FromBytes("tiny", data)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := f.String("general.architecture"); err != nil || got != arch {
					t.Error(got, err)
				}
				x, ok := f.Tensor("blk.0.ffn_down.weight")
				if !ok || x.Format != format || len(x.Dims) != 2 || x.Dims[0] != 2*x.Dims[1] {
					t.Fatalf("%+v", x)
				}
				raw, err := x.Data()
				if err != nil {
					t.Fatal(err)
				}
				values := make([]float32, x.Elements())
				quant.Dequantize(format, values, raw)
				var sum, squares float64
				for _, v := range values {
					sum += float64(v)
					squares += float64(v) * float64(v)
				}
				n := float64(len(values))
				if mean, sd := sum/n, math.Sqrt(squares/n)*math.Sqrt(float64(x.Dims[0])); math.Abs(mean) > 0.01 || math.Abs(sd-1) > 0.1 {
					t.Errorf("mean %g, standard deviation %g of the expected", mean, sd)
				}
				_, bias := f.Tensor("blk.0.attn_q.bias")
				if bias != (arch == "qwen2") {
					t.Errorf("bias: %v", bias)
				}
			})
		}
	}
}

func TestVocabulary(t *testing.T) {
	v := makeVocabulary()
	if len(v.tokens) != len(v.types) || len(v.tokens)%32 != 0 || len(v.merges) != merges {
		t.Fatalf("%d tokens, %d types, %d merges", len(v.tokens), len(v.types), len(v.merges))
	}
	seen := map[string]bool{}
	for _, text := range v.tokens {
		if seen[text] {
			t.Errorf("%q stands twice", text)
		}
		seen[text] = true
	}
	for _, m := range v.merges {
		left, right, ok := strings.Cut(m, " ")
		if !ok || !seen[left] || !seen[right] || !seen[left+right] {
			t.Errorf("merge %q", m)
		}
	}
	for _, text := range []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"} {
		if v.types[v.id(text)] != control {
			t.Errorf("%s is no control token", text)
		}
	}
	for _, text := range []string{"Ġthe", "user", "assistant", "Ġreturn", "ĊĊ"} {
		if !slices.Contains(v.tokens, text) {
			t.Errorf("%q has not been learnt", text)
		}
	}
}

func TestOptions(t *testing.T) {
	data, err := Bytes(Options{Arch: "llama", Tied: true, RopeFactors: true, Layers: 3, Embed: 32, FF: 96, Heads: 2, KVHeads: 1, Context: 77,
		FormatOf: func(name string) quant.Format {
			if strings.HasSuffix(name, "attn_v.weight") {
				return quant.Q8_0
			}
			return quant.Q4_0
		}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.FromBytes("tiny", data)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Uint("llama.context_length"); err != nil || n != 77 {
		t.Error(n, err)
	}
	if _, ok := f.Tensor("output.weight"); ok {
		t.Error("a tied model with a head")
	}
	for name, want := range map[string]string{"blk.2.attn_v.weight": "Q8_0[32 16]", "blk.2.attn_q.weight": "Q4_0[32 32]", "rope_freqs.weight": "F32[8]", "blk.0.ffn_up.weight": "Q4_0[32 96]"} {
		if x, _ := f.Tensor(name); x.FormatName()+x.Shape() != want {
			t.Errorf("%s: %s%s, want %s", name, x.FormatName(), x.Shape(), want)
		}
	}
	vocab, err := Bytes(Options{VocabOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := gguf.FromBytes("tiny", vocab); err != nil || len(f.Tensors()) != 0 {
		t.Error("vocabulary with tensors", err)
	}
	for _, o := range []Options{{Arch: "gpt"}, {Format: 99}, {Embed: 30, Heads: 4}, {Heads: 4, KVHeads: 3}, {Format: quant.Q4_K, Embed: 64}} {
		if _, err := Bytes(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
