// Package kvcache hands out the pages of a backend's key/value cache to
// sequences of tokens.
//
// A [Cache] owns a fixed number of pages of [kernels.KVPage] positions. A
// [Sequence] is a row of tokens whose keys and values are held in pages; several
// sequences may share pages (see [Sequence.Fork]), and a shared page is copied
// before a sequence writes into it. Running out of pages is an error, never a
// panic.
//
// Values are not safe for concurrent use: the owner of the backend, which runs
// one operation at a time anyway, is the owner of its cache too.
package kvcache

import (
	"errors"
	"fmt"

	"atoll/kernels"
)

// ErrFull is wrapped by the error of a reservation for which no page is left.
var ErrFull = errors.New("key/value cache is full")

// Cache is a pool of pages.
type Cache struct {
	backend kernels.Backend
	kv      kernels.KV
	refs    []int32 // holders of each page, 0 for a free one
	free    []int32 // stack of free pages
}

// New returns an empty cache of shape.Pages pages.
func New(b kernels.Backend, shape kernels.KVShape) (*Cache, error) {
	if shape.Pages < 1 {
		return nil, fmt.Errorf("key/value cache: %d pages, want at least 1", shape.Pages)
	}
	kv, err := b.NewKV(shape)
	if err != nil {
		return nil, fmt.Errorf("key/value cache of %d positions: %w", shape.Pages*kernels.KVPage, err)
	}
	c := &Cache{backend: b, kv: kv, refs: make([]int32, shape.Pages), free: make([]int32, 0, shape.Pages)}
	for p := shape.Pages - 1; p >= 0; p-- {
		c.free = append(c.free, int32(p))
	}
	return c, nil
}

// PagesFor returns the number of pages that hold n positions.
func PagesFor(n int) int { return (n + kernels.KVPage - 1) / kernels.KVPage }

// KV returns the backend's handle.
func (c *Cache) KV() kernels.KV { return c.kv }

// Positions returns the number of positions that all pages together hold.
func (c *Cache) Positions() int { return len(c.refs) * kernels.KVPage }

// FreePages returns the number of pages that no sequence holds.
func (c *Cache) FreePages() int { return len(c.free) }

// take returns a free page with one holder.
func (c *Cache) take() (int32, error) {
	if len(c.free) == 0 {
		return 0, fmt.Errorf("reserve page: %w (%d positions)", ErrFull, c.Positions())
	}
	p := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	c.refs[p] = 1
	return p, nil
}

// drop gives up one hold of a page.
func (c *Cache) drop(p int32) {
	c.refs[p]--
	switch {
	case c.refs[p] == 0:
		c.free = append(c.free, p)
	case c.refs[p] < 0:
		panic(fmt.Sprintf("BUG: key/value page %d released more often than held", p))
	}
}

// NewSequence returns a sequence without tokens, which holds no page yet.
func (c *Cache) NewSequence() *Sequence { return &Sequence{cache: c} }
