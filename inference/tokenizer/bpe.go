package tokenizer

import (
	"bytes"
	"math"
	"math/bits"
	"unicode/utf8"

	"atoll/inference/gguf"
)

// byteRunes is how byte-level vocabularies write bytes as characters: printable
// Latin-1 stands for itself, the rest is counted up from U+0100.
var byteRunes = func() (table [256]rune) {
	next := rune(0x100)
	for b := range table {
		switch r := rune(b); {
		case r >= '!' && r <= '~', r >= 0xA1 && r <= 0xAC, r >= 0xAE:
			table[b] = r
		default:
			table[b] = next
			next++
		}
	}
	return table
}()

// runeBytes is the inverse of byteRunes, -1 for a character that stands for no byte.
var runeBytes = func() (table [0x144]int16) {
	for i := range table {
		table[i] = -1
	}
	for b, r := range byteRunes {
		table[r] = int16(b)
	}
	return table
}()

// merges holds the rules of byte pair encoding over symbols: token ids, and beyond
// them intermediate texts that are no tokens.
type merges struct {
	first [256]int32 // byte -> its symbol
	extra []string   // texts of the symbols from len(texts) on
	keys  []uint64   // open addressing: pair of symbols + 1 (0 is free) ...
	vals  []uint64   // ... and its rank<<32 | merged symbol
	shift uint
}

const noMerge = math.MaxUint64

func (m *merges) slot(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> m.shift }

// find returns rank<<32|symbol of a pair, noMerge if it does not merge.
func (m *merges) find(left, right int32) uint64 {
	key := (uint64(uint32(left))<<32 | uint64(uint32(right))) + 1
	mask := uint64(len(m.keys) - 1)
	for i := m.slot(key); ; i = (i + 1) & mask {
		switch m.keys[i] {
		case key:
			return m.vals[i]
		case 0:
			return noMerge
		}
	}
}

// add keeps the first rule of a pair.
func (m *merges) add(left, right int32, val uint64) {
	key := (uint64(uint32(left))<<32 | uint64(uint32(right))) + 1
	mask := uint64(len(m.keys) - 1)
	i := m.slot(key)
	for ; m.keys[i] != 0; i = (i + 1) & mask {
		if m.keys[i] == key {
			return
		}
	}
	m.keys[i], m.vals[i] = key, val
}

func (t *Tokenizer) readMerges(f *gguf.File) error {
	seq, count, err := f.EachString(keyMerges)
	if err != nil {
		return err
	}
	if count > 4*maxTokens {
		return f.KeyError(keyMerges, "%d merges, at most %d are supported", count, 4*maxTokens)
	}
	m := &t.bpe
	size := 1 << bits.Len(uint(count+count/2+1))
	m.keys, m.vals = make([]uint64, size), make([]uint64, size)
	m.shift = uint(64 - bits.TrailingZeros(uint(size)))
	extra := map[string]int32{}
	symbol := func(text []byte) int32 {
		// A control token must not grow out of plain text, whatever the merges say.
		if id, ok := t.ids[string(text)]; ok && t.kinds[id] != kindControl {
			return id
		}
		if s, ok := extra[string(text)]; ok {
			return s
		}
		s := int32(len(t.texts) + len(m.extra))
		extra[string(text)] = s
		m.extra = append(m.extra, string(text))
		return s
	}
	for b, r := range byteRunes {
		m.first[b] = symbol(utf8.AppendRune(nil, r))
	}
	var whole []byte
	for rank, rule := range seq {
		// A space may stand for itself as the first character of a rule.
		at := -1
		if len(rule) > 1 {
			at = bytes.IndexByte(rule[1:], ' ') + 1
		}
		if at <= 0 || at == len(rule)-1 {
			return f.KeyError(keyMerges, "merge %d is not two parts: %.40q", rank, rule)
		}
		whole = append(append(whole[:0], rule[:at]...), rule[at+1:]...)
		m.add(symbol(rule[:at]), symbol(rule[at+1:]), uint64(rank)<<32|uint64(uint32(symbol(whole))))
	}
	return nil
}

// scratch is the working memory of one Encode.
type scratch struct {
	ids  []int32
	vals []uint64 // value of the pair that begins at a symbol
	prev []int32
	next []int32
	heap []uint64 // rank<<32 | index of the left symbol
	text []byte
}

// shortWord is the longest word, in bytes, that is merged by looking at all pairs.
const shortWord = 40

// encodeWord appends the tokens of one word.
func (t *Tokenizer) encodeWord(dst []int32, word string, s *scratch) []int32 {
	if t.wholeWord && len(word) <= t.maxText {
		s.text = s.text[:0]
		for i := range len(word) {
			s.text = utf8.AppendRune(s.text, byteRunes[word[i]])
		}
		if id, ok := t.ids[string(s.text)]; ok && t.kinds[id] != kindControl {
			return append(dst, id)
		}
	}
	if len(word) > shortWord {
		return t.mergeLong(dst, word, s)
	}
	var ids [shortWord]int32
	var vals [shortWord]uint64
	n := len(word)
	for i := range n {
		ids[i] = t.bpe.first[word[i]]
	}
	best, at := uint64(noMerge), 0
	for i := range n - 1 {
		if vals[i] = t.bpe.find(ids[i], ids[i+1]); vals[i] < best {
			best, at = vals[i], i
		}
	}
	for best != noMerge {
		ids[at] = int32(uint32(best))
		copy(ids[at+1:n-1], ids[at+2:n])
		copy(vals[at:n-2], vals[at+1:n-1])
		n--
		if at > 0 {
			vals[at-1] = t.bpe.find(ids[at-1], ids[at])
		}
		if at < n-1 {
			vals[at] = t.bpe.find(ids[at], ids[at+1])
		}
		// Equal ranks are the same pair: the leftmost goes first.
		best = noMerge
		for i, v := range vals[:n-1] {
			if v < best {
				best, at = v, i
			}
		}
	}
	for _, id := range ids[:n] {
		dst = t.appendSymbol(dst, id)
	}
	return dst
}

// appendSymbol appends a token, or the tokens of the bytes of a text that is none.
// A byte without a token is left out, as llama.cpp does.
func (t *Tokenizer) appendSymbol(dst []int32, symbol int32) []int32 {
	if int(symbol) < len(t.texts) {
		return append(dst, symbol)
	}
	for _, r := range t.bpe.extra[int(symbol)-len(t.texts)] {
		if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
			continue
		}
		if id := t.bpe.first[runeBytes[r]]; int(id) < len(t.texts) {
			dst = append(dst, id)
		}
	}
	return dst
}

// mergeLong merges a word of any length in n log n: the pairs wait in a heap, and
// one that has changed since is skipped when it comes up.
func (t *Tokenizer) mergeLong(dst []int32, word string, s *scratch) []int32 {
	n := len(word)
	s.ids, s.vals = grow(s.ids, n), grow(s.vals, n)
	s.prev, s.next = grow(s.prev, n), grow(s.next, n)
	s.heap = s.heap[:0]
	ids, vals, prev, next := s.ids, s.vals, s.prev, s.next
	for i := range n {
		ids[i] = t.bpe.first[word[i]]
		prev[i], next[i] = int32(i-1), int32(i+1)
	}
	next[n-1] = -1
	pair := func(left int32) {
		vals[left] = noMerge
		if right := next[left]; right >= 0 {
			vals[left] = t.bpe.find(ids[left], ids[right])
		}
		if vals[left] != noMerge {
			s.push(vals[left]&^math.MaxUint32 | uint64(left))
		}
	}
	for i := range n {
		pair(int32(i))
	}
	for len(s.heap) > 0 {
		top := s.pop()
		left := int32(uint32(top))
		// A rank belongs to one pair, so an equal rank is that pair.
		if vals[left] == noMerge || vals[left]>>32 != top>>32 {
			continue
		}
		right := next[left]
		ids[left] = int32(uint32(vals[left]))
		next[left] = next[right]
		if next[right] >= 0 {
			prev[next[right]] = left
		}
		vals[right] = noMerge
		pair(left)
		if prev[left] >= 0 {
			pair(prev[left])
		}
	}
	for i := int32(0); i >= 0; i = next[i] {
		dst = t.appendSymbol(dst, ids[i])
	}
	return dst
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (s *scratch) push(v uint64) {
	h := append(s.heap, v)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up] <= v {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = v
	s.heap = h
}

func (s *scratch) pop() uint64 {
	h := s.heap
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	s.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if h[down] >= last {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return top
}
