package kerneltest

import (
	"testing"

	"atoll/kernels"
)

// filled returns a cache with past positions of random keys and values in every
// layer, written in pieces, and the page table of its sequence in shuffled order.
func filled(t testing.TB, b kernels.Backend, s kernels.KVShape, past int, seed uint64) (kernels.KV, []int32) {
	t.Helper()
	rng := source(20, seed)
	kv, err := b.NewKV(s)
	if err != nil {
		t.Fatal(err)
	}
	if kv.Pages() != s.Pages || kv.Bytes() < int64(s.Layers*s.Pages*kernels.KVPage*s.KVHeads*s.HeadDim*4) {
		t.Fatalf("cache of %d pages, %d bytes for %+v", kv.Pages(), kv.Bytes(), s)
	}
	var pages []int32
	for _, p := range rng.Perm(s.Pages) {
		pages = append(pages, int32(p))
	}
	w := s.KVHeads * s.HeadDim
	for pos := 0; pos < past; {
		n := min(1+rng.IntN(23), past-pos)
		for l := range s.Layers {
			b.StoreKV(kv, l, pages, pos, load(t, b, normals(rng, n*w)), load(t, b, normals(rng, n*w)), n)
		}
		pos += n
	}
	return kv, pages
}

func (s *suite) attend(t *testing.T) {
	for _, c := range []struct {
		name               string
		heads, kvHeads, hd int
		pos, n             int
	}{
		{"first token", 4, 4, 64, 0, 1},
		{"decode in the first page", 4, 2, 64, 7, 1},
		{"decode at a page border", 12, 2, 128, 15, 1},
		{"decode after a page border", 12, 2, 128, 16, 1},
		{"decode far", 14, 2, 64, 777, 1},
		{"decode, groups of three", 9, 3, 64, 300, 1},
		{"decode, groups of seven, odd head", 14, 2, 80, 100, 1},
		{"prompt from nothing", 12, 2, 128, 0, 70},
		{"prompt of one page", 9, 3, 64, 0, 16},
		{"prompt crossing pages", 6, 1, 64, 11, 33},
		{"prompt with a past", 4, 4, 128, 250, 31},
		{"two tokens", 8, 2, 64, 40, 2},
		{"odd count", 3, 1, 8, 3, 47},
	} {
		t.Run(c.name, func(t *testing.T) {
			shape := kernels.KVShape{Layers: 2, KVHeads: c.kvHeads, HeadDim: c.hd, Pages: (c.pos+c.n)/kernels.KVPage + 3}
			q := normals(source(21, uint64(c.pos)), c.n*c.heads*c.hd)
			got, want := s.both(t, func(b kernels.Backend) kernels.Buffer {
				kv, pages := filled(t, b, shape, c.pos+c.n, uint64(c.pos))
				out := load(t, b, make([]float32, len(q)))
				b.Attend(out, load(t, b, q), kv, c.n, kernels.Attention{Layer: 1, Heads: c.heads, KVHeads: c.kvHeads, HeadDim: c.hd, Scale: 0.125, Pages: pages, Pos: c.pos})
				return out
			})
			near(t, got, want, c.hd, 5e-5)
		})
	}
}

func (s *suite) copyPage(t *testing.T) {
	shape := kernels.KVShape{Layers: 3, KVHeads: 2, HeadDim: 64, Pages: 4}
	q := normals(source(22), 4*64)
	for layer := range shape.Layers {
		got, want := s.both(t, func(b kernels.Backend) kernels.Buffer {
			kv, pages := filled(t, b, shape, 20, 5)
			b.CopyPage(kv, pages[3], pages[1])
			fork := []int32{pages[0], pages[3]}
			// What is written to the copy is not seen by the original.
			w := shape.KVHeads * shape.HeadDim
			b.StoreKV(kv, layer, fork, 19, load(t, b, normals(source(23), w)), load(t, b, normals(source(24), w)), 1)
			out := load(t, b, make([]float32, 2*len(q)))
			a := kernels.Attention{Layer: layer, Heads: 4, KVHeads: 2, HeadDim: 64, Scale: 0.125, Pages: pages, Pos: 19}
			b.Attend(b.Slice(out, 0, len(q)), load(t, b, q), kv, 1, a)
			a.Pages = fork
			b.Attend(b.Slice(out, len(q), len(q)), load(t, b, q), kv, 1, a)
			return out
		})
		near(t, got, want, 64, 5e-5)
		same := true
		for i := range q {
			same = same && want[i] == want[len(q)+i]
		}
		if same {
			t.Fatal("the copy and the original gave the same result")
		}
	}
}
