package model

import (
	"atoll/inference/gguf"
	"atoll/kernels"
)

// llama is the architecture of Llama 1 to 3, SmolLM, Mistral 7B and many others.
// The converter permutes the rows of the query and key weights so that the two
// values of a head that are rotated together are neighbours.
func llama() architecture {
	return architecture{
		name: "llama",
		hyper: func(f *gguf.File) (Hyper, error) {
			return readDense(f, "llama", kernels.RopeNorm,
				"tensor_data_layout", // how an old converter permuted; the norm form is meant
				"pooling_type",       // for embeddings
			)
		},
		tensors: []entry{
			{"token_embd.weight", tokenEmbedding, vocab, embed, false},
			{"output_norm.weight", outputNorm, one, embed, false},
			{"output.weight", outputHead, vocab, embed, true}, // absent: the embedding is the head
			{"rope_freqs.weight", ropeFactors, one, ropeHalf, true},
			{"blk.#.attn_norm.weight", attnNorm, one, embed, false},
			{"blk.#.attn_q.weight", attnQ, queries, embed, false},
			{"blk.#.attn_k.weight", attnK, keyvals, embed, false},
			{"blk.#.attn_v.weight", attnV, keyvals, embed, false},
			{"blk.#.attn_output.weight", attnOut, embed, queries, false},
			{"blk.#.attn_q.bias", attnQBias, one, queries, true},
			{"blk.#.attn_k.bias", attnKBias, one, keyvals, true},
			{"blk.#.attn_v.bias", attnVBias, one, keyvals, true},
			{"blk.#.attn_output.bias", attnOutBias, one, embed, true},
			{"blk.#.ffn_norm.weight", ffnNorm, one, embed, false},
			{"blk.#.ffn_gate.weight", ffnGate, ff, embed, false},
			{"blk.#.ffn_up.weight", ffnUp, ff, embed, false},
			{"blk.#.ffn_down.weight", ffnDown, embed, ff, false},
			{"blk.#.ffn_gate.bias", ffnGateBias, one, ff, true},
			{"blk.#.ffn_up.bias", ffnUpBias, one, ff, true},
			{"blk.#.ffn_down.bias", ffnDownBias, one, embed, true},
			// Frequencies that an early converter stored; they follow from the keys.
			{"blk.#.attn_rot_embd", ignored, one, ropeHalf, true},
			{"blk.#.attention.rotary_emb.inv_freq", ignored, one, ropeHalf, true},
		},
	}
}
