package inspect

import (
	"errors"

	"atoll/inference/engine"
	"atoll/inference/gguf"
	"atoll/inference/tokenizer"
)

// File is what a model file holds.
type File struct {
	Path       string       `json:"path"`
	Size       int64        `json:"size"`
	Version    int          `json:"version"`
	Metadata   []Metadata   `json:"metadata"`
	Tensors    []Tensor     `json:"tensors"`
	Formats    []FormatSum  `json:"formats"`
	Tokenizer  *TokenizerOf `json:"tokenizer,omitempty"`
	Chat       *Chat        `json:"chat,omitempty"`
	Model      *Model       `json:"model,omitempty"`
	Problems   []string     `json:"problems,omitempty"` // why atoll could not run it
	Vocabulary bool         `json:"vocabulary_only"`    // holds no tensors
}

// Metadata is one key.
type Metadata struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value string `json:"value"` // for people; long values are cut
}

// Tensor is one array of weights.
type Tensor struct {
	Name   string   `json:"name"`
	Format string   `json:"format"`
	Shape  []uint64 `json:"shape"` // the first is the length of a row
	Bytes  uint64   `json:"bytes"`
}

// FormatSum adds up the tensors of one format.
type FormatSum struct {
	Format  string `json:"format"`
	Tensors int    `json:"tensors"`
	Bytes   uint64 `json:"bytes"`
}

// TokenizerOf describes a vocabulary.
type TokenizerOf struct {
	Pre    string   `json:"pre"`
	Tokens int      `json:"tokens"`
	BOS    string   `json:"bos,omitempty"`
	EOS    string   `json:"eos,omitempty"`
	AddBOS bool     `json:"add_bos"`
	EOG    []string `json:"eog"` // tokens that end an answer
}

// Chat describes a chat template.
type Chat struct {
	Family string `json:"family"` // form of tool calls
	Tools  bool   `json:"tools"`  // the template itself describes tools
}

// Model describes what would run, with the plan of its memory.
type Model struct {
	Architecture   string `json:"architecture"`
	Layers         int    `json:"layers"`
	Embed          int    `json:"embedding_length"`
	FeedForward    int    `json:"feed_forward_length"`
	Heads          int    `json:"heads"`
	KVHeads        int    `json:"kv_heads"`
	HeadDim        int    `json:"head_dim"`
	Parameters     int64  `json:"parameters"`
	TrainedContext int    `json:"trained_context"`
	Memory         Memory `json:"memory"`
}

// Memory is a plan in bytes.
type Memory struct {
	Context int   `json:"ctx"`
	Weights int64 `json:"weights"`
	KV      int64 `json:"kv"`
	Scratch int64 `json:"scratch"`
	Total   int64 `json:"total"`
}

// Describe reads a model file. What stands in the way of running it is listed in
// Problems, so that a file of an unknown architecture or format can be looked at, too;
// a file that is no GGUF file is an error. ctx is the window to plan for, 0 the default.
func Describe(path string, ctx int) (*File, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := &File{Path: path, Size: f.Size(), Version: f.Version(), Vocabulary: len(f.Tensors()) == 0}
	for _, kv := range f.KVs() {
		kind := kv.Type.String()
		if kv.Type == gguf.Array {
			kind = "array of " + kv.Elem.String()
		}
		out.Metadata = append(out.Metadata, Metadata{kv.Key, kind, kv.Text(120)})
	}
	sums := map[string]int{}
	for _, t := range f.Tensors() {
		name := t.FormatName()
		out.Tensors = append(out.Tensors, Tensor{t.Name, name, t.Dims, t.Size})
		i, ok := sums[name]
		if !ok {
			i = len(out.Formats)
			sums[name] = i
			out.Formats = append(out.Formats, FormatSum{Format: name})
		}
		out.Formats[i].Tensors++
		out.Formats[i].Bytes += t.Size
	}
	problem := func(err error) { out.Problems = append(out.Problems, err.Error()) }

	if tok, err := tokenizer.New(f); err != nil {
		problem(err)
	} else {
		opts := engine.FormatOptions(tok)
		out.Tokenizer = &TokenizerOf{Pre: tok.Pre(), Tokens: tok.Len(), BOS: opts.BOS, EOS: opts.EOS, AddBOS: tok.AddBOS(), EOG: []string{}}
		for _, id := range tok.EOG() {
			out.Tokenizer.EOG = append(out.Tokenizer.EOG, tok.Text(id))
		}
		if format, err := engine.ChatFormat(f, tok); err != nil {
			problem(err)
		} else {
			out.Chat = &Chat{Family: format.Family(), Tools: format.ToolsInTemplate()}
		}
	}
	if out.Vocabulary {
		return out, nil
	}
	info, err := engine.Plan(engine.Options{Path: path, Ctx: ctx})
	var window *engine.WindowError
	if errors.As(err, &window) {
		return nil, err
	}
	if err != nil {
		problem(err)
		return out, nil
	}
	h := info.Hyper
	out.Model = &Model{
		Architecture: h.Arch, Layers: h.Layers, Embed: h.Embed, FeedForward: h.FF, Heads: h.Heads, KVHeads: h.KVHeads, HeadDim: h.HeadDim,
		Parameters: info.Parameters, TrainedContext: info.TrainedContext,
		Memory: Memory{Context: info.Context, Weights: info.Memory.Weights, KV: info.Memory.KV, Scratch: info.Memory.Scratch, Total: info.Memory.Total()},
	}
	return out, nil
}
