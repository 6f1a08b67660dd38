package model

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"atoll/inference/gguf"
	"atoll/inference/kvcache"
	"atoll/inference/tinymodel"
	"atoll/kernels"
	"atoll/kernels/quant"
	"atoll/kernels/ref"
)

// load makes a model that evaluates batch tokens at once, with a cache of positions.
func load(t testing.TB, f *gguf.File, batch, positions int) (*Model, *kvcache.Cache) {
	t.Helper()
	b := ref.New(ref.Options{Threads: 2})
	t.Cleanup(func() { b.Close() })
	m, err := Load(context.Background(), f, b, Options{Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.NewCache(positions)
	if err != nil {
		t.Fatal(err)
	}
	return m, c
}

func randomTokens(n, vocab int) []int32 {
	rng := rand.New(rand.NewPCG(3, 4))
	out := make([]int32, n)
	for i := range out {
		out[i] = rng.Int32N(int32(vocab))
	}
	return out
}

// all collects copies of the wanted rows.
func all(rows *[][]float32) Want {
	return Want{Row: func(_ int, l []float32) error { *rows = append(*rows, slices.Clone(l)); return nil }}
}

func TestForwardAgainstOracle(t *testing.T) {
	// angles with base 10000, 16 dims.
	plain := func(dims int) func(pos, pair int) float64 {
		return func(pos, pair int) float64 { return float64(pos) * math.Pow(10000, -2*float64(pair)/float64(dims)) }
	}
	yarn := func(pos, pair int) float64 {
		// Context 1024, 16 dims, base 10000: a pair turns 32 times in the context at
		// index 1.41, once at index 4.42, so pairs 0 and 1 stay, from 5 on they are
		// divided by 4, and between them is a ramp.
		f := math.Pow(10000, -2*float64(pair)/16)
		keep := []float64{1, 1, 0.75, 0.5, 0.25, 0, 0, 0}[pair]
		return float64(pos) * (f*keep + f/4*(1-keep))
	}
	tests := []struct {
		name   string
		o      tinymodel.Options
		change func(*[]gguf.Pair, *[]gguf.Blob)
		angle  func(pos, pair int) float64
		mscale float64
		dims   int
	}{
		{name: "qwen2", o: tinymodel.Options{Arch: "qwen2"}},
		{name: "qwen2 tied", o: tinymodel.Options{Arch: "qwen2", Tied: true, Seed: 5}},
		{name: "llama", o: tinymodel.Options{Arch: "llama"}},
		{name: "llama F16", o: tinymodel.Options{Arch: "llama", Format: quant.F16}},
		{name: "llama, three layers, one key/value head", o: tinymodel.Options{Arch: "llama", Layers: 3, KVHeads: 1, Seed: 9}},
		{name: "llama with rope factors", o: tinymodel.Options{Arch: "llama", RopeFactors: true}},
		{name: "partial rope", o: tinymodel.Options{Arch: "llama"}, change: set("llama.rope.dimension_count", uint32(8)), angle: plain(8), dims: 8},
		{name: "linear scaling", o: tinymodel.Options{}, change: func(p *[]gguf.Pair, b *[]gguf.Blob) {
			set("qwen2.rope.scaling.type", "linear")(p, b)
			set("qwen2.rope.scaling.factor", float32(4))(p, b)
		}, angle: func(pos, pair int) float64 { return plain(16)(pos, pair) / 4 }},
		{name: "yarn", o: tinymodel.Options{}, change: func(p *[]gguf.Pair, b *[]gguf.Blob) {
			set("qwen2.rope.scaling.type", "yarn")(p, b)
			set("qwen2.rope.scaling.factor", float32(4))(p, b)
			set("qwen2.rope.scaling.original_context_length", uint32(1024))(p, b)
			set("qwen2.context_length", uint32(4096))(p, b)
		}, angle: yarn, mscale: 1 + 0.1*math.Log(4)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := file(t, tt.o, tt.change)
			m, c := load(t, f, 7, 64)
			h := m.Hyper()
			o := &oracle{
				t: t, file: f, neox: h.Arch == "qwen2", layers: h.Layers, width: h.Embed,
				heads: h.Heads, kvHeads: h.KVHeads, headDim: h.HeadDim, eps: 1e-6, angle: tt.angle, mscale: 1, dims: 16,
			}
			if tt.angle == nil {
				o.angle = plain(16)
			}
			if tt.mscale != 0 {
				o.mscale = tt.mscale
			}
			if tt.dims != 0 {
				o.dims = tt.dims
			}
			if factors := o.values("rope_freqs.weight"); factors != nil {
				o.angle = func(pos, pair int) float64 { return plain(16)(pos, pair) / factors[pair] }
			}
			tokens := randomTokens(40, h.Vocab)
			var got [][]float32
			if err := m.Forward(context.Background(), c.NewSequence(), tokens, all(&got)); err != nil {
				t.Fatal(err)
			}
			want := o.logits(tokens)
			if len(got) != len(want) {
				t.Fatalf("%d rows of logits, want %d", len(got), len(want))
			}
			// Half-precision keys and values, float32 sums: a few in ten thousand.
			var worst, spread float64
			for p := range want {
				for i, w := range want[p] {
					worst = max(worst, math.Abs(float64(got[p][i])-w))
					spread = max(spread, math.Abs(w))
				}
			}
			if !(worst < 4e-3*spread) {
				t.Errorf("largest difference %g, logits up to %g", worst, spread)
			}
		})
	}
}

// TestSplitsChangeNothing: neither the size of batches nor where a prompt is cut into
// calls changes a bit of the result.
func TestSplitsChangeNothing(t *testing.T) {
	for _, format := range []quant.Format{quant.F32, quant.Q8_0, quant.Q4_1} {
		f := file(t, tinymodel.Options{Format: format}, nil)
		var want [][]float32
		tokens := randomTokens(70, 100)
		for _, split := range []struct{ batch, first int }{{256, 70}, {1, 70}, {16, 70}, {33, 5}, {256, 69}, {8, 17}} {
			m, c := load(t, f, split.batch, 80)
			s := c.NewSequence()
			var got [][]float32
			for _, part := range [][]int32{tokens[:split.first], tokens[split.first:]} {
				if err := m.Forward(context.Background(), s, part, all(&got)); err != nil {
					t.Fatal(err)
				}
			}
			if want == nil {
				want = got
			}
			for p := range want {
				if !slices.Equal(got[p], want[p]) {
					t.Fatalf("%v: batches of %d cut at %d: logits behind token %d differ", format, split.batch, split.first, p)
				}
			}
			if !slices.Equal(s.Tokens(), tokens) {
				t.Errorf("sequence holds %v", s.Tokens())
			}
		}
	}
}

func TestWantedRows(t *testing.T) {
	f := file(t, tinymodel.Options{}, nil)
	m, c := load(t, f, 16, 128)
	tokens := randomTokens(100, 100)
	var want [][]float32
	first := c.NewSequence()
	if err := m.Forward(context.Background(), first, tokens, all(&want)); err != nil {
		t.Fatal(err)
	}
	first.Release()
	for _, from := range []int{99, 98, 90, 50, 16, 15, 0, 100, 1000} {
		s := c.NewSequence()
		next := min(from, 100)
		err := m.Forward(context.Background(), s, tokens, Want{From: from, Row: func(i int, l []float32) error {
			if i != next {
				t.Errorf("from %d: row %d, want %d", from, i, next)
			}
			if !slices.Equal(l, want[i]) {
				t.Errorf("from %d: row %d differs", from, i)
			}
			next++
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if next != 100 {
			t.Errorf("from %d: rows end at %d", from, next)
		}
		s.Release()
	}
}

func TestForwardFaults(t *testing.T) {
	f := file(t, tinymodel.Options{}, nil)
	m, c := load(t, f, 16, 32)
	ctx := context.Background()

	t.Run("token outside the vocabulary", func(t *testing.T) {
		for _, bad := range []int32{-1, int32(m.Hyper().Vocab), math.MaxInt32} {
			s := c.NewSequence()
			if err := m.Forward(ctx, s, []int32{1, bad}, Want{}); err == nil {
				t.Errorf("token %d: no error", bad)
			}
			if s.Len() != 0 {
				t.Errorf("token %d: %d tokens committed", bad, s.Len())
			}
		}
	})
	t.Run("cache is full", func(t *testing.T) {
		s := c.NewSequence()
		err := m.Forward(ctx, s, randomTokens(40, 100), Want{})
		if !errors.Is(err, kvcache.ErrFull) {
			t.Fatalf("error %v, want ErrFull", err)
		}
		if s.Len() != 32 {
			t.Errorf("%d tokens committed, want the two batches that fit", s.Len())
		}
		s.Release()
		if c.FreePages() != 2 {
			t.Errorf("%d pages free, want all 2", c.FreePages())
		}
	})
	t.Run("the receiver of logits fails", func(t *testing.T) {
		s := c.NewSequence()
		mine := errors.New("mine")
		err := m.Forward(ctx, s, randomTokens(5, 100), Want{Row: func(int, []float32) error { return mine }})
		if err != mine || s.Len() != 0 {
			t.Errorf("error %v, %d tokens", err, s.Len())
		}
		s.Release()
	})
	t.Run("cancelled before", func(t *testing.T) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		if err := m.Forward(done, c.NewSequence(), []int32{1}, Want{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cancelled between batches", func(t *testing.T) {
		done, cancel := context.WithCancel(ctx)
		defer cancel()
		s := c.NewSequence()
		tokens := randomTokens(30, 100)
		err := m.Forward(done, s, tokens, Want{Row: func(i int, _ []float32) error {
			if i == 15 { // the last one of the first batch
				cancel()
			}
			return nil
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		if s.Len() != 16 {
			t.Fatalf("%d tokens committed, want the first batch", s.Len())
		}
		var got, want [][]float32
		if err := m.Forward(ctx, s, tokens[s.Len():], Want{From: 29 - s.Len(), Row: all(&got).Row}); err != nil {
			t.Fatal(err)
		}
		s.Release()
		if err := m.Forward(ctx, c.NewSequence(), tokens, Want{From: 29, Row: all(&want).Row}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[0], want[0]) {
			t.Error("the continuation differs from an evaluation that was not cancelled")
		}
	})
}

// TestScratchIsReused: evaluating a token allocates no buffers.
func TestScratchIsReused(t *testing.T) {
	f := file(t, tinymodel.Options{}, nil)
	m, c := load(t, f, 16, 512)
	s := c.NewSequence()
	row := func([]float32) error { return nil }
	if err := m.Forward(context.Background(), s, []int32{1}, LastOnly(1, row)); err != nil {
		t.Fatal(err)
	}
	before := m.state
	for range 50 {
		if err := m.Forward(context.Background(), s, []int32{1}, LastOnly(1, row)); err != nil {
			t.Fatal(err)
		}
	}
	if &before.hostOut[0] != &m.state.hostOut[0] || &before.hostX[0] != &m.state.hostX[0] || before.rows != m.state.rows {
		t.Error("scratch memory was replaced")
	}
}

// stopping is a backend whose first product cancels the evaluation and waits until the
// flag that stops operations is set.
type stopping struct {
	kernels.Backend
	t       *testing.T
	cancel  context.CancelFunc
	stop    *atomic.Bool
	matmuls int
}

func (b *stopping) SetStop(stop *atomic.Bool) {
	b.stop = stop
	b.Backend.SetStop(stop)
}

func (b *stopping) MatMul(dst []kernels.Buffer, w []kernels.Weight, x kernels.Buffer, n int, add bool) {
	if b.matmuls++; b.matmuls == 1 {
		b.cancel()
		for deadline := time.Now().Add(30 * time.Second); b.stop == nil || !b.stop.Load(); runtime.Gosched() {
			if time.Now().After(deadline) {
				b.t.Error("the end of the context does not set the stop flag")
				return
			}
		}
	}
	b.Backend.MatMul(dst, w, x, n, add)
}

// TestStopFlag: the end of the context stops the operation that runs, no further layer
// is begun, and nothing is committed.
func TestStopFlag(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &stopping{Backend: ref.New(ref.Options{Threads: 1}), t: t, cancel: cancel}
	m, err := Load(context.Background(), file(t, tinymodel.Options{Layers: 5}, nil), b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.NewCache(64)
	if err != nil {
		t.Fatal(err)
	}
	s := c.NewSequence()
	if err := m.Forward(ctx, s, randomTokens(10, 100), Want{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if b.matmuls > 4 {
		t.Errorf("%d products, want those of the first layer", b.matmuls)
	}
	if s.Len() != 0 || c.FreePages() != 4 {
		t.Errorf("%d tokens committed, %d of 4 pages free", s.Len(), c.FreePages())
	}
	if b.stop != nil {
		t.Error("the flag was not taken away")
	}
}
