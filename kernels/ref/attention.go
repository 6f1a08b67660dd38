package ref

import (
	"math"

	"atoll/kernels"
	"atoll/kernels/quant"
)

// kv holds half-precision keys and values as [layer][page][kv head][cell][dim].
type kv struct {
	shape kernels.KVShape
	k, v  []uint16
}

// Pages implements the same method as documented on kernels.KV.
func (c *kv) Pages() int { return c.shape.Pages }

// Bytes implements the same method as documented on kernels.KV.
func (c *kv) Bytes() int64 { return int64(len(c.k)+len(c.v)) * 2 }

// NewKV implements the same method as documented on kernels.Backend.
func (b *Backend) NewKV(s kernels.KVShape) (kernels.KV, error) {
	check(s.Layers > 0 && s.KVHeads > 0 && s.HeadDim > 0 && s.Pages > 0, "cache of shape %+v", s)
	n := s.Layers * s.Pages * kernels.KVPage * s.KVHeads * s.HeadDim
	return &kv{s, make([]uint16, n), make([]uint16, n)}, nil
}

// at returns where the vector of a position begins.
func (c *kv) at(layer int, pages []int32, pos, head int) int {
	page := int(pages[pos/kernels.KVPage])
	check(page >= 0 && page < c.shape.Pages && layer < c.shape.Layers, "page %d of %d, layer %d", page, c.shape.Pages, layer)
	return (((layer*c.shape.Pages+page)*c.shape.KVHeads+head)*kernels.KVPage + pos%kernels.KVPage) * c.shape.HeadDim
}

// StoreKV implements the same method as documented on kernels.Backend.
func (b *Backend) StoreKV(cache kernels.KV, layer int, pages []int32, pos int, k, v kernels.Buffer, n int) {
	c, ks, vs := cache.(*kv), k.(buffer), v.(buffer)
	hd := c.shape.HeadDim
	row := c.shape.KVHeads * hd
	check(len(ks) >= n*row && len(vs) >= n*row && (pos+n-1)/kernels.KVPage < len(pages), "store of %d rows at %d in %d pages", n, pos, len(pages))
	for t := range n {
		for h := range c.shape.KVHeads {
			at := c.at(layer, pages, pos+t, h)
			for i := range hd {
				c.k[at+i] = quant.F32ToF16(ks[t*row+h*hd+i])
				c.v[at+i] = quant.F32ToF16(vs[t*row+h*hd+i])
			}
		}
	}
}

// CopyPage implements the same method as documented on kernels.Backend.
func (b *Backend) CopyPage(cache kernels.KV, dst, src int32) {
	c := cache.(*kv)
	n := c.shape.KVHeads * kernels.KVPage * c.shape.HeadDim
	check(dst >= 0 && src >= 0 && int(dst) < c.shape.Pages && int(src) < c.shape.Pages, "copy of page %d to %d of %d", src, dst, c.shape.Pages)
	for l := range c.shape.Layers {
		d, s := (l*c.shape.Pages+int(dst))*n, (l*c.shape.Pages+int(src))*n
		copy(c.k[d:d+n], c.k[s:s+n])
		copy(c.v[d:d+n], c.v[s:s+n])
	}
}

// Attend implements the same method as documented on kernels.Backend.
func (b *Backend) Attend(dst, q kernels.Buffer, cache kernels.KV, n int, a kernels.Attention) {
	c, qs, out := cache.(*kv), q.(buffer), dst.(buffer)
	hd := a.HeadDim
	check(a.KVHeads == c.shape.KVHeads && hd == c.shape.HeadDim && a.Heads%a.KVHeads == 0, "attention %+v over a cache of %+v", a, c.shape)
	check(len(qs) >= n*a.Heads*hd && len(out) >= n*a.Heads*hd && (a.Pos+n-1)/kernels.KVPage < len(a.Pages), "attention of %d tokens at %d", n, a.Pos)
	group := a.Heads / a.KVHeads
	type scratch struct{ scores, vec, acc []float32 }
	mem := make([]scratch, b.threads)
	// One item is a token and a key/value head: its keys and values are widened once
	// for all query heads that share them.
	b.share(n*a.KVHeads, func(worker, item int) {
		s := &mem[worker]
		t, kh := item/a.KVHeads, item%a.KVHeads
		past := a.Pos + t + 1
		if s.vec == nil {
			*s = scratch{make([]float32, group*(a.Pos+n)), make([]float32, hd), make([]float32, hd)}
		}
		query := qs[(t*a.Heads+kh*group)*hd:][:group*hd]
		for p := range past {
			at := c.at(a.Layer, a.Pages, p, kh)
			for i, h := range c.k[at : at+hd] {
				s.vec[i] = quant.F16ToF32(h)
			}
			for g := range group {
				s.scores[g*past+p] = dotFloat(query[g*hd:(g+1)*hd], s.vec) * a.Scale
			}
		}
		for g := range group {
			softmax(s.scores[g*past : (g+1)*past])
		}
		res := out[(t*a.Heads+kh*group)*hd:][:group*hd]
		clear(res)
		for p := range past {
			at := c.at(a.Layer, a.Pages, p, kh)
			for i, h := range c.v[at : at+hd] {
				s.vec[i] = quant.F16ToF32(h)
			}
			for g := range group {
				w := s.scores[g*past+p]
				r := res[g*hd : (g+1)*hd]
				for i, v := range s.vec {
					r[i] += w * v
				}
			}
		}
	})
}

func softmax(x []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float64
	for i, v := range x {
		e := math.Exp(float64(v - top))
		x[i] = float32(e)
		sum += e
	}
	inv := float32(1 / sum)
	for i := range x {
		x[i] *= inv
	}
}
