package model

import (
	"fmt"
	"math"
	"testing"

	"atoll/inference/gguf"
	"atoll/kernels/quant"
)

// oracle evaluates a model in the plainest way: float64, no cache, no batches, one
// function from tokens to logits, written from the papers and not from the decoder.
type oracle struct {
	t       *testing.T
	file    *gguf.File
	neox    bool
	layers  int
	width   int
	heads   int
	kvHeads int
	headDim int
	eps     float64
	angle   func(pos, pair int) float64 // of the rotation
	mscale  float64
	dims    int
}

// values unpacks a tensor; nil if the file lacks it.
func (o *oracle) values(name string) []float64 {
	t, ok := o.file.Tensor(name)
	if !ok {
		return nil
	}
	data, err := t.Data()
	if err != nil {
		o.t.Fatal(err)
	}
	f := make([]float32, t.Elements())
	quant.Dequantize(t.Format, f, data)
	out := make([]float64, len(f))
	for i, v := range f {
		out[i] = float64(v)
	}
	return out
}

func (o *oracle) linear(name string, x []float64) []float64 {
	w := o.values(name + ".weight")
	out := make([]float64, len(w)/len(x))
	bias := o.values(name + ".bias")
	for r := range out {
		for c, v := range x {
			out[r] += w[r*len(x)+c] * v
		}
		if bias != nil {
			out[r] += bias[r]
		}
	}
	return out
}

func (o *oracle) norm(name string, x []float64) []float64 {
	g := o.values(name + ".weight")
	var sum float64
	for _, v := range x {
		sum += v * v
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v / math.Sqrt(sum/float64(len(x))+o.eps) * g[i]
	}
	return out
}

func (o *oracle) rotate(x []float64, pos int) {
	for h := 0; h < len(x); h += o.headDim {
		for i := range o.dims / 2 {
			a, b := h+2*i, h+2*i+1
			if o.neox {
				a, b = h+i, h+i+o.dims/2
			}
			s, c := math.Sincos(o.angle(pos, i))
			x[a], x[b] = o.mscale*(x[a]*c-x[b]*s), o.mscale*(x[a]*s+x[b]*c)
		}
	}
}

// logits returns those behind every token.
func (o *oracle) logits(tokens []int32) [][]float64 {
	embed := o.values("token_embd.weight")
	xs := make([][]float64, len(tokens))
	for t, tok := range tokens {
		xs[t] = append([]float64(nil), embed[int(tok)*o.width:(int(tok)+1)*o.width]...)
	}
	for l := range o.layers {
		p := fmt.Sprintf("blk.%d.", l)
		var ks, vs [][]float64
		for t := range xs {
			h := o.norm(p+"attn_norm", xs[t])
			q, k, v := o.linear(p+"attn_q", h), o.linear(p+"attn_k", h), o.linear(p+"attn_v", h)
			o.rotate(q, t)
			o.rotate(k, t)
			ks, vs = append(ks, k), append(vs, v)
			att := make([]float64, len(q))
			for head := range o.heads {
				kv := head / (o.heads / o.kvHeads)
				scores := make([]float64, t+1)
				var sum float64
				for u := range scores {
					for i := range o.headDim {
						scores[u] += q[head*o.headDim+i] * ks[u][kv*o.headDim+i]
					}
					scores[u] = math.Exp(scores[u] / math.Sqrt(float64(o.headDim)))
					sum += scores[u]
				}
				for u := range scores {
					for i := range o.headDim {
						att[head*o.headDim+i] += scores[u] / sum * vs[u][kv*o.headDim+i]
					}
				}
			}
			for i, v := range o.linear(p+"attn_output", att) {
				xs[t][i] += v
			}
			h = o.norm(p+"ffn_norm", xs[t])
			gate, up := o.linear(p+"ffn_gate", h), o.linear(p+"ffn_up", h)
			for i, g := range gate {
				gate[i] = g / (1 + math.Exp(-g)) * up[i]
			}
			for i, v := range o.linear(p+"ffn_down", gate) {
				xs[t][i] += v
			}
		}
	}
	head := "output"
	if _, ok := o.file.Tensor("output.weight"); !ok {
		head = "token_embd"
	}
	out := make([][]float64, len(xs))
	for t := range xs {
		out[t] = o.linear(head, o.norm("output_norm", xs[t]))
	}
	return out
}
