package kvcache

import (
	"fmt"

	"atoll/kernels"
)

// Sequence is a row of tokens with their keys and values. Position p stands in
// cell p%KVPage of page Pages()[p/KVPage].
//
// Adding tokens takes three steps, so that an evaluation that fails or is
// cancelled leaves the sequence as it was: [Sequence.Reserve] makes the next
// positions writable, the backend stores keys and values there, and
// [Sequence.Commit] says which tokens they belong to.
type Sequence struct {
	cache  *Cache
	pages  []int32
	tokens []int32 // committed
}

// KV returns the handle of the cache that the sequence lives in.
func (s *Sequence) KV() kernels.KV { return s.cache.kv }

// Len returns the number of committed tokens.
func (s *Sequence) Len() int { return len(s.tokens) }

// Tokens returns the committed tokens. The slice is valid until the next change
// of the sequence and must not be written to.
func (s *Sequence) Tokens() []int32 { return s.tokens }

// Pages returns the page table: the committed and the reserved positions. It is
// valid until the next change of the sequence and must not be written to.
func (s *Sequence) Pages() []int32 { return s.pages }

// Reserve makes the n positions after the committed ones writable: it takes the
// pages that are missing and copies the page in which the committed tokens end
// when another sequence holds it too. On an error, which wraps [ErrFull], the
// sequence keeps its tokens.
func (s *Sequence) Reserve(n int) error {
	if n < 0 {
		panic(fmt.Sprintf("BUG: reserve %d positions", n))
	}
	if n == 0 {
		return nil
	}
	c := s.cache
	first := len(s.tokens) / kernels.KVPage // page of the first new position
	last := PagesFor(len(s.tokens) + n)
	for i := first; i < min(last, len(s.pages)); i++ {
		old := s.pages[i]
		if c.refs[old] == 1 {
			continue
		}
		p, err := c.take()
		if err != nil {
			return err
		}
		if i*kernels.KVPage < len(s.tokens) { // holds committed positions
			c.backend.CopyPage(c.kv, p, old)
		}
		s.pages[i] = p
		c.drop(old)
	}
	for len(s.pages) < last {
		p, err := c.take()
		if err != nil {
			return err
		}
		s.pages = append(s.pages, p)
	}
	return nil
}

// Commit appends tokens whose keys and values now stand at the positions that
// [Sequence.Reserve] made writable.
func (s *Sequence) Commit(tokens []int32) {
	if n := len(s.tokens) + len(tokens); PagesFor(n) > len(s.pages) {
		panic(fmt.Sprintf("BUG: commit %d tokens into %d pages", n, len(s.pages)))
	}
	s.tokens = append(s.tokens, tokens...)
}

// Truncate forgets the tokens from position n on and gives back the pages that
// are no longer needed.
func (s *Sequence) Truncate(n int) {
	if n < 0 || n > len(s.tokens) {
		panic(fmt.Sprintf("BUG: truncate sequence of %d tokens to %d", len(s.tokens), n))
	}
	s.tokens = s.tokens[:n]
	keep := PagesFor(n)
	for _, p := range s.pages[keep:] {
		s.cache.drop(p)
	}
	s.pages = s.pages[:keep]
}

// CommonPrefix returns the number of leading tokens that the sequence shares
// with tokens.
func (s *Sequence) CommonPrefix(tokens []int32) int {
	n := 0
	for n < len(s.tokens) && n < len(tokens) && s.tokens[n] == tokens[n] {
		n++
	}
	return n
}

// Reuse truncates the sequence to the longest prefix that it shares with tokens
// and returns its length: only tokens[keep:] are left to evaluate. At least the
// last one always is, because its logits are needed.
func (s *Sequence) Reuse(tokens []int32) (keep int) {
	keep = s.CommonPrefix(tokens)
	if keep == len(tokens) && keep > 0 {
		keep--
	}
	s.Truncate(keep)
	return keep
}

// Fork returns a second sequence with the same tokens, which shares all pages
// that hold committed tokens until one of the two writes into them.
func (s *Sequence) Fork() *Sequence {
	f := &Sequence{cache: s.cache, tokens: append([]int32(nil), s.tokens...)}
	f.pages = append(f.pages, s.pages[:PagesFor(len(s.tokens))]...)
	for _, p := range f.pages {
		s.cache.refs[p]++
	}
	return f
}

// Release gives back all pages; the sequence is empty afterwards.
func (s *Sequence) Release() { s.Truncate(0) }
