//go:build amd64 && !purego

package cpu

import (
	"fmt"
	"unsafe"

	"atoll/kernels"
)

// kv is a cache in half precision. Keys of a page are [HeadDim][16], so that one
// load holds a dimension of 16 positions; values are [16][dim], dim being HeadDim
// rounded up to 16. A page is one piece of memory: for each layer, for each head,
// keys and values. So memory is touched as the cache fills, and a page can be copied
// or saved as a whole.
type kv struct {
	shape          kernels.KVShape
	dim            int // padded
	data           []byte
	keyLen, valLen int // bytes of keys, of values, of one head of a page
	pageLen        int // from one page to the next
}

// Pages implements the same method as documented on kernels.KV.
func (c *kv) Pages() int { return c.shape.Pages }

// Bytes implements the same method as documented on kernels.KV.
func (c *kv) Bytes() int64 { return int64(len(c.data)) }

// NewKV implements the same method as documented on kernels.Backend. The memory is
// returned when the backend is closed.
func (b *backend) NewKV(s kernels.KVShape) (kernels.KV, error) {
	if b.closed {
		return nil, fmt.Errorf("new cache: %w", errClosed)
	}
	check(s.Layers > 0 && s.KVHeads > 0 && s.HeadDim > 0 && s.Pages > 0, "cache %+v", s)
	if s.HeadDim%8 != 0 {
		return nil, fmt.Errorf("new cache: heads of %d values are not supported, want a multiple of 8", s.HeadDim)
	}
	c := &kv{shape: s, dim: (s.HeadDim + 15) &^ 15}
	c.keyLen, c.valLen = s.HeadDim*kernels.KVPage*2, c.dim*kernels.KVPage*2
	c.pageLen = c.pageBytes()
	if c.pageLen/4096%2 == 0 {
		// The same head of successive pages must not fall on the same cache lines.
		c.pageLen += 4096
	}
	var err error
	if c.data, err = b.arena.alloc(s.Pages * c.pageLen); err != nil {
		return nil, fmt.Errorf("new cache: %w", err)
	}
	return c, nil
}

// pageBytes returns the size of what a page holds.
func (c *kv) pageBytes() int { return c.shape.Layers * c.shape.KVHeads * (c.keyLen + c.valLen) }

func (c *kv) keyPage(layer, head int, page int32) *byte {
	return &c.data[int(page)*c.pageLen+(layer*c.shape.KVHeads+head)*(c.keyLen+c.valLen)]
}

func (c *kv) valuePage(layer, head int, page int32) *byte {
	return &c.data[int(page)*c.pageLen+(layer*c.shape.KVHeads+head)*(c.keyLen+c.valLen)+c.keyLen]
}

// checkPages panics unless the page table covers the positions 0..end.
func (c *kv) checkPages(layer int, pages []int32, end int) {
	check(layer >= 0 && layer < c.shape.Layers, "layer %d of a cache of %d", layer, c.shape.Layers)
	check(end >= 0 && end <= len(pages)*kernels.KVPage, "position %d in %d pages", end, len(pages))
	for _, p := range pages[:(end+kernels.KVPage-1)/kernels.KVPage] {
		check(p >= 0 && int(p) < c.shape.Pages, "page %d of a cache of %d", p, c.shape.Pages)
	}
}

// StoreKV implements the same method as documented on kernels.Backend.
func (b *backend) StoreKV(cache kernels.KV, layer int, pages []int32, pos int, k, v kernels.Buffer, n int) {
	c, ks, vs := cache.(*kv), k.(buffer), v.(buffer)
	s := c.shape
	w := s.KVHeads * s.HeadDim
	check(n >= 0 && pos >= 0 && len(ks) >= n*w && len(vs) >= n*w, "store of %d x %d", n, w)
	if n == 0 {
		return
	}
	c.checkPages(layer, pages, pos+n)
	// A unit is a page of a head, so that workers never share a line.
	first, last := pos/kernels.KVPage, (pos+n-1)/kernels.KVPage
	unit := func(item int) {
		head, pg := item%s.KVHeads, first+item/s.KVHeads
		keys := unsafe.Slice((*uint16)(unsafe.Pointer(c.keyPage(layer, head, pages[pg]))), c.keyLen/2)
		values := unsafe.Slice((*uint16)(unsafe.Pointer(c.valuePage(layer, head, pages[pg]))), c.valLen/2)
		var row [maxHeadDim]uint16
		for p := max(pos, pg*kernels.KVPage); p < min(pos+n, (pg+1)*kernels.KVPage); p++ {
			cell, at := p%kernels.KVPage, (p-pos)*w+head*s.HeadDim
			toHalf(&values[cell*c.dim], &vs[at], s.HeadDim)
			for d := 0; d < s.HeadDim; d += maxHeadDim {
				m := min(maxHeadDim, s.HeadDim-d)
				toHalf(&row[0], &ks[at+d], m)
				for i, h := range row[:m] {
					keys[(d+i)*kernels.KVPage+cell] = h
				}
			}
		}
	}
	items := (last - first + 1) * s.KVHeads
	if n*w < shareValues {
		for i := 0; i < items && !b.stopped(); i++ {
			unit(i)
		}
		return
	}
	b.share(items, func(_, i int) { unit(i) })
}

// maxHeadDim is how many values of a key are rounded at once.
const maxHeadDim = 256

// CopyPage implements the same method as documented on kernels.Backend.
func (b *backend) CopyPage(cache kernels.KV, dst, src int32) {
	c := cache.(*kv)
	s := c.shape
	check(dst >= 0 && int(dst) < s.Pages && src >= 0 && int(src) < s.Pages, "copy of page %d to %d of %d", src, dst, s.Pages)
	n := c.pageBytes()
	copy(c.data[int(dst)*c.pageLen:][:n], c.data[int(src)*c.pageLen:][:n])
}
