package model

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"atoll/inference/gguf"
	"atoll/inference/tinymodel"
	"atoll/kernels/quant"
)

// file makes a model file in memory and lets change take part in it.
func file(t testing.TB, o tinymodel.Options, change func(pairs *[]gguf.Pair, tensors *[]gguf.Blob)) *gguf.File {
	t.Helper()
	pairs, tensors, err := tinymodel.Parts(o)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&pairs, &tensors)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, pairs, tensors); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.FromBytes("tiny.gguf", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// set replaces or adds a key; a nil value removes it.
func set(key string, value any) func(*[]gguf.Pair, *[]gguf.Blob) {
	return func(pairs *[]gguf.Pair, _ *[]gguf.Blob) {
		*pairs = slices.DeleteFunc(*pairs, func(p gguf.Pair) bool { return p.Key == key })
		if value != nil {
			*pairs = append(*pairs, gguf.Pair{Key: key, Value: value})
		}
	}
}

// tensor changes one tensor; nil removes it.
func tensor(name string, change func(*gguf.Blob)) func(*[]gguf.Pair, *[]gguf.Blob) {
	return func(_ *[]gguf.Pair, tensors *[]gguf.Blob) {
		for i := range *tensors {
			if (*tensors)[i].Name == name {
				if change == nil {
					*tensors = slices.Delete(*tensors, i, i+1)
				} else {
					change(&(*tensors)[i])
				}
				return
			}
		}
		panic("no tensor " + name)
	}
}

func TestDescribeFaults(t *testing.T) {
	resize := func(dims ...uint64) func(*gguf.Blob) {
		return func(b *gguf.Blob) {
			n := uint64(4)
			for _, d := range dims {
				n *= d
			}
			b.Format, b.Dims, b.Data = quant.F32, dims, make([]byte, n)
		}
	}
	add := func(b gguf.Blob) func(*[]gguf.Pair, *[]gguf.Blob) {
		return func(_ *[]gguf.Pair, tensors *[]gguf.Blob) { *tensors = append(*tensors, b) }
	}
	tests := []struct {
		name   string
		arch   string
		change func(*[]gguf.Pair, *[]gguf.Blob)
		want   []string // parts of the message
	}{
		{"unknown architecture", "", set("general.architecture", "mamba"), []string{"general.architecture", `"mamba"`, "llama, qwen2"}},
		{"no architecture", "", set("general.architecture", nil), []string{"general.architecture", "missing"}},
		{"architecture of the wrong type", "", set("general.architecture", uint32(3)), []string{"general.architecture", "u32"}},
		{"an adapter", "", set("general.type", "adapter"), []string{"general.type", "adapter"}},
		{"split over files", "", set("split.count", uint16(3)), []string{"split.count", "3 files", "merge"}},
		{"no layers", "", set("qwen2.block_count", uint32(0)), []string{"qwen2.block_count", "0 is outside"}},
		{"absurd layers", "", set("qwen2.block_count", uint32(1<<31)), []string{"qwen2.block_count", "2147483648 is outside"}},
		{"layers missing from the file", "", set("qwen2.block_count", uint32(900)), []string{"tensor blk.2.attn_norm.weight", "missing"}},
		{"layer count missing", "", set("qwen2.block_count", nil), []string{"qwen2.block_count", "missing"}},
		{"layer count of the wrong type", "", set("qwen2.block_count", "2"), []string{"qwen2.block_count", "string"}},
		{"fewer layers than the file holds", "", set("qwen2.block_count", uint32(1)), []string{"tensor blk.1.", "not part of"}},
		{"head counts do not divide", "", set("qwen2.attention.head_count_kv", uint32(3)), []string{"head_count_kv", "3 key/value heads do not divide 4"}},
		{"no key/value heads", "", set("qwen2.attention.head_count_kv", uint32(0)), []string{"head_count_kv", "0 is outside"}},
		{"heads do not divide the width", "", set("qwen2.attention.head_count", uint32(6)), []string{"head_count", "6 heads do not divide"}},
		{"other width than the tensors", "", set("qwen2.embedding_length", uint32(128)), []string{"tensor token_embd.weight", "shape [64", "want [128"}},
		{"epsilon of zero", "", set("qwen2.attention.layer_norm_rms_epsilon", float32(0)), []string{"layer_norm_rms_epsilon", "0 is not above 0"}},
		{"epsilon missing", "", set("qwen2.attention.layer_norm_rms_epsilon", nil), []string{"layer_norm_rms_epsilon", "missing"}},
		{"context of zero", "", set("qwen2.context_length", uint32(0)), []string{"context_length", "0 is outside"}},
		{"odd rope", "", set("qwen2.rope.dimension_count", uint32(7)), []string{"rope.dimension_count", "7 is not an even number"}},
		{"rope wider than a head", "", set("qwen2.rope.dimension_count", uint32(32)), []string{"rope.dimension_count", "at most 16"}},
		{"negative rope base", "", set("qwen2.rope.freq_base", float32(-1)), []string{"rope.freq_base", "-1"}},
		{"unknown rope scaling", "", set("qwen2.rope.scaling.type", "longrope"), []string{"rope.scaling.type", `"longrope"`, "yarn"}},
		{"experts", "", set("qwen2.expert_count", uint32(8)), []string{"expert_count", "8 experts"}},
		{"sliding window", "llama", set("llama.attention.sliding_window", uint32(512)), []string{"sliding_window", "512"}},
		{"values of another length than keys", "llama", set("llama.attention.value_length", uint32(8)), []string{"value_length", "differs"}},
		{"a key that is not understood", "", set("qwen2.attention.temperature", float32(2)), []string{"qwen2.attention.temperature", "not understood"}},
		{"vocabulary size other than the embedding", "llama", set("llama.vocab_size", uint32(7)), []string{"tensor token_embd.weight", "want [64 7]"}},
		{"a tensor is missing", "", tensor("blk.1.ffn_up.weight", nil), []string{"tensor blk.1.ffn_up.weight", "missing"}},
		{"a bias is missing", "qwen2", tensor("blk.0.attn_k.bias", nil), []string{"tensor blk.0.attn_k.bias", "missing"}},
		{"a tensor is left over", "", add(gguf.Blob{Name: "blk.0.extra.weight", Format: quant.F32, Dims: []uint64{1}, Data: make([]byte, 4)}), []string{"tensor blk.0.extra.weight", "not part of"}},
		{"a name with a line break", "", add(gguf.Blob{Name: "a\nb", Format: quant.F32, Dims: []uint64{1}, Data: make([]byte, 4)}), []string{`tensor "a\nb"`}},
		{"a matrix of another shape", "", tensor("blk.0.attn_k.weight", resize(64, 64)), []string{"tensor blk.0.attn_k.weight", "shape [64 64], want [64 32]"}},
		{"a vector of another shape", "", tensor("output_norm.weight", resize(63)), []string{"tensor output_norm.weight", "shape [63], want [64]"}},
		{"three dimensions", "", tensor("blk.0.attn_k.weight", resize(64, 32, 1)), []string{"shape [64 32 1]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Describe(file(t, tinymodel.Options{Arch: tt.arch}, tt.change))
			if err == nil {
				t.Fatal("no error")
			}
			var fault *gguf.Error
			if !errors.As(err, &fault) || fault.Path != "tiny.gguf" {
				t.Errorf("%T %v is no gguf.Error of the file", err, err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
		})
	}
}

func TestUnsupportedFormat(t *testing.T) {
	pairs, tensors, err := tinymodel.Parts(tinymodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, pairs, tensors); err != nil {
		t.Fatal(err)
	}
	// The format follows name and dimensions: blk.0.attn_k.weight is 64 x 32.
	data := b.Bytes()
	name := []byte("blk.0.attn_k.weight")
	at := bytes.Index(data, name) + len(name) + 4 + 2*8
	data[at] = 10 // Q2_K
	f, err := gguf.FromBytes("tiny.gguf", data)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Describe(f)
	for _, part := range []string{"blk.0.attn_k.weight", "Q2_K", "Q4_K"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %q", err, part)
		}
	}
}

func TestDescribe(t *testing.T) {
	tests := []struct {
		name string
		o    tinymodel.Options
		tied bool
	}{
		{"qwen2", tinymodel.Options{Arch: "qwen2"}, false},
		{"qwen2 tied", tinymodel.Options{Arch: "qwen2", Tied: true}, true},
		{"llama with rope factors", tinymodel.Options{Arch: "llama", RopeFactors: true}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := file(t, tt.o, set("general.name", "some name"))
			d, err := Describe(f)
			if err != nil {
				t.Fatal(err)
			}
			var bytes, values int64
			for _, tensor := range f.Tensors() {
				bytes += int64(tensor.Size)
				values += int64(tensor.Elements())
			}
			h := d.Hyper
			if h.Layers != 2 || h.Embed != 64 || h.Heads != 4 || h.KVHeads != 2 || h.HeadDim != 16 || h.FF != 128 || h.Context != 1024 || h.Rope.Dims != 16 || h.Name != "some name" {
				t.Errorf("hyper-parameters %+v", h)
			}
			if d.Tied != tt.tied || d.WeightBytes != bytes || d.Parameters != values {
				t.Errorf("tied %v, %d bytes, %d values; want %v, %d, %d", d.Tied, d.WeightBytes, d.Parameters, tt.tied, bytes, values)
			}
			if got, want := d.KVBytes(100), int64(100*2*2*16*2*2); got != want {
				t.Errorf("KVBytes = %d, want %d", got, want)
			}
		})
	}
}

// TestIgnoredTensors: what an early converter stored beside the weights is known to
// follow from the keys.
func TestIgnoredTensors(t *testing.T) {
	f := file(t, tinymodel.Options{Arch: "llama"}, func(_ *[]gguf.Pair, tensors *[]gguf.Blob) {
		*tensors = append(*tensors, gguf.Blob{Name: "blk.1.attn_rot_embd", Format: quant.F32, Dims: []uint64{8}, Data: make([]byte, 32)})
	})
	if _, err := Describe(f); err != nil {
		t.Error(err)
	}
}
