package kvcache

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/kernels"
)

// fakeBackend keeps one token per cell, so that a test can see which token each
// position of a sequence leads to.
type fakeBackend struct {
	kernels.Backend
	cells  [][kernels.KVPage]int32
	copies int
}

type fakeKV struct{ pages int }

func (k fakeKV) Pages() int   { return k.pages }
func (k fakeKV) Bytes() int64 { return 0 }

func (b *fakeBackend) NewKV(s kernels.KVShape) (kernels.KV, error) {
	b.cells = make([][kernels.KVPage]int32, s.Pages)
	return fakeKV{s.Pages}, nil
}

func (b *fakeBackend) CopyPage(_ kernels.KV, dst, src int32) {
	b.cells[dst] = b.cells[src]
	b.copies++
}

// push appends tokens to s as an evaluation does.
func (b *fakeBackend) push(s *Sequence, tokens ...int32) error {
	if err := s.Reserve(len(tokens)); err != nil {
		return err
	}
	for i, tok := range tokens {
		p := s.Len() + i
		b.cells[s.Pages()[p/kernels.KVPage]][p%kernels.KVPage] = tok
	}
	s.Commit(tokens)
	return nil
}

// held reads the tokens of s back from the cells.
func (b *fakeBackend) held(s *Sequence) []int32 {
	out := []int32{}
	for p := range s.Len() {
		out = append(out, b.cells[s.Pages()[p/kernels.KVPage]][p%kernels.KVPage])
	}
	return out
}

func open(t *testing.T, pages int) (*fakeBackend, *Cache) {
	t.Helper()
	b := &fakeBackend{}
	c, err := New(b, kernels.KVShape{Layers: 1, KVHeads: 1, HeadDim: 1, Pages: pages})
	if err != nil {
		t.Fatal(err)
	}
	return b, c
}

func tokens(from, n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(from + i)
	}
	return out
}

func TestReuse(t *testing.T) {
	tests := []struct {
		name      string
		have      []int32
		next      []int32
		keep      int
		freePages int // of 8
	}{
		{"nothing cached", nil, tokens(0, 5), 0, 8},
		{"longer prompt", tokens(0, 20), tokens(0, 40), 20, 6},
		{"same prompt evaluates the last token again", tokens(0, 20), tokens(0, 20), 19, 6},
		{"shorter prompt", tokens(0, 40), tokens(0, 10), 9, 7},
		{"diverges inside a page", tokens(0, 40), append(tokens(0, 18), tokens(100, 30)...), 18, 6},
		{"diverges at a page border", tokens(0, 40), append(tokens(0, 16), 99), 16, 7},
		{"nothing in common", tokens(0, 40), tokens(50, 3), 0, 8},
		{"single token, same", tokens(0, 1), tokens(0, 1), 0, 8},
		{"empty prompt", tokens(0, 20), nil, 0, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, c := open(t, 8)
			s := c.NewSequence()
			if err := b.push(s, tt.have...); err != nil {
				t.Fatal(err)
			}
			if keep := s.Reuse(tt.next); keep != tt.keep || s.Len() != keep {
				t.Fatalf("Reuse = %d, Len = %d, want %d", keep, s.Len(), tt.keep)
			}
			if c.FreePages() != tt.freePages {
				t.Errorf("%d pages free, want %d", c.FreePages(), tt.freePages)
			}
			if err := b.push(s, tt.next[tt.keep:]...); err != nil {
				t.Fatal(err)
			}
			if got := b.held(s); !slices.Equal(got, append([]int32{}, tt.next...)) {
				t.Errorf("cells hold %v, want %v", got, tt.next)
			}
		})
	}
}

func TestReservedPositionsAreNotCommitted(t *testing.T) {
	b, c := open(t, 4)
	s := c.NewSequence()
	if err := b.push(s, tokens(0, 10)...); err != nil {
		t.Fatal(err)
	}
	if err := s.Reserve(30); err != nil {
		t.Fatal(err)
	}
	if s.Len() != 10 || len(s.Pages()) != 3 {
		t.Fatalf("Len = %d with %d pages, want 10 with 3", s.Len(), len(s.Pages()))
	}
	s.Truncate(10) // the evaluation was cancelled
	if c.FreePages() != 3 {
		t.Errorf("%d pages free, want 3", c.FreePages())
	}
	if got := b.held(s); !slices.Equal(got, tokens(0, 10)) {
		t.Errorf("cells hold %v", got)
	}
}

func TestExhaustion(t *testing.T) {
	b, c := open(t, 2)
	s := c.NewSequence()
	if err := b.push(s, tokens(0, 2*kernels.KVPage)...); err != nil {
		t.Fatal(err)
	}
	if err := s.Reserve(1); !errors.Is(err, ErrFull) {
		t.Fatalf("Reserve = %v, want ErrFull", err)
	}
	if got := b.held(s); !slices.Equal(got, tokens(0, 2*kernels.KVPage)) {
		t.Errorf("tokens after the failure: %v", got)
	}
	f := s.Fork()
	f.Truncate(20)
	if err := b.push(f, 7); !errors.Is(err, ErrFull) { // needs a page of its own
		t.Fatalf("copy-on-write without a free page: %v, want ErrFull", err)
	}
	if got := b.held(f); !slices.Equal(got, tokens(0, 20)) {
		t.Errorf("fork after the failure: %v", got)
	}
	s.Release()
	if err := b.push(f, 7); err != nil {
		t.Fatalf("after the other sequence was released: %v", err)
	}
	f.Release()
	if c.FreePages() != 2 {
		t.Errorf("%d pages free after both were released, want 2", c.FreePages())
	}
}

func TestForkSharesUntilWritten(t *testing.T) {
	b, c := open(t, 8)
	s := c.NewSequence()
	if err := b.push(s, tokens(0, 40)...); err != nil { // 3 pages, the last half full
		t.Fatal(err)
	}
	f := s.Fork()
	if c.FreePages() != 5 {
		t.Fatalf("fork took pages: %d free, want 5", c.FreePages())
	}
	if err := b.push(f, 100, 101); err != nil {
		t.Fatal(err)
	}
	if b.copies != 1 || c.FreePages() != 4 {
		t.Errorf("%d copies, %d pages free, want 1 and 4", b.copies, c.FreePages())
	}
	if err := b.push(s, 200); err != nil { // now the only holder
		t.Fatal(err)
	}
	if b.copies != 1 {
		t.Errorf("the last holder copied too: %d copies", b.copies)
	}
	if got, want := b.held(s), append(tokens(0, 40), 200); !slices.Equal(got, want) {
		t.Errorf("original holds %v", got)
	}
	if got, want := b.held(f), append(tokens(0, 40), 100, 101); !slices.Equal(got, want) {
		t.Errorf("fork holds %v", got)
	}
}

// TestRandomOperations compares sequences with plain slices over many random
// steps, and counts the pages at the end.
func TestRandomOperations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b, c := open(t, 24)
	type pair struct {
		seq  *Sequence
		want []int32
	}
	live := []*pair{{seq: c.NewSequence()}}
	for step := range 20000 {
		p := live[rng.IntN(len(live))]
		switch op := rng.IntN(10); {
		case op < 5:
			add := make([]int32, 1+rng.IntN(40))
			for i := range add {
				add[i] = rng.Int32()
			}
			if err := b.push(p.seq, add...); err == nil {
				p.want = append(p.want, add...)
			} else if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
		case op < 7:
			n := rng.IntN(len(p.want) + 1)
			p.seq.Truncate(n)
			p.want = p.want[:n]
		case op < 8 && len(live) < 5:
			live = append(live, &pair{p.seq.Fork(), slices.Clone(p.want)})
		case op < 9 && len(live) > 1:
			p.seq.Release()
			live = slices.DeleteFunc(live, func(q *pair) bool { return q == p })
		default:
			if err := p.seq.Reserve(rng.IntN(50)); err != nil && !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
		}
		for _, q := range live {
			if !slices.Equal(b.held(q.seq), append([]int32{}, q.want...)) {
				t.Fatalf("step %d: a sequence lost its tokens", step)
			}
		}
	}
	for _, p := range live {
		p.seq.Release()
	}
	if c.FreePages() != 24 {
		t.Errorf("%d pages free at the end, want 24", c.FreePages())
	}
}

func TestMisusePanics(t *testing.T) {
	b, c := open(t, 2)
	s := c.NewSequence()
	if err := b.push(s, 1); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(){
		"commit without reserve": func() { s.Commit(tokens(0, 40)) },
		"truncate past the end":  func() { s.Truncate(5) },
		"negative reserve":       func() { _ = s.Reserve(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r, _ := recover().(string); len(r) < 5 || r[:5] != "BUG: " {
					t.Errorf("recovered %q, want a text that starts with BUG", r)
				}
			}()
			f()
		})
	}
}
