package model

import (
	"atoll/inference/gguf"
	"atoll/kernels"
)

// qwen2 is the architecture of Qwen2 and Qwen2.5: a llama with biases on queries,
// keys and values, and rotation of the two halves of a head against each other.
func qwen2() architecture {
	return architecture{
		name: "qwen2",
		hyper: func(f *gguf.File) (Hyper, error) {
			return readDense(f, "qwen2", kernels.RopeNeoX, "pooling_type")
		},
		tensors: []entry{
			{"token_embd.weight", tokenEmbedding, vocab, embed, false},
			{"output_norm.weight", outputNorm, one, embed, false},
			{"output.weight", outputHead, vocab, embed, true}, // absent: the embedding is the head
			{"blk.#.attn_norm.weight", attnNorm, one, embed, false},
			{"blk.#.attn_q.weight", attnQ, queries, embed, false},
			{"blk.#.attn_k.weight", attnK, keyvals, embed, false},
			{"blk.#.attn_v.weight", attnV, keyvals, embed, false},
			{"blk.#.attn_q.bias", attnQBias, one, queries, false},
			{"blk.#.attn_k.bias", attnKBias, one, keyvals, false},
			{"blk.#.attn_v.bias", attnVBias, one, keyvals, false},
			{"blk.#.attn_output.weight", attnOut, embed, queries, false},
			{"blk.#.ffn_norm.weight", ffnNorm, one, embed, false},
			{"blk.#.ffn_gate.weight", ffnGate, ff, embed, false},
			{"blk.#.ffn_up.weight", ffnUp, ff, embed, false},
			{"blk.#.ffn_down.weight", ffnDown, embed, ff, false},
		},
	}
}
