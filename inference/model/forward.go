package model

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"atoll/inference/kvcache"
	"atoll/kernels"
	"atoll/kernels/quant"
)

// headRows is the largest number of positions whose logits are computed at once;
// a row of them is as wide as the vocabulary.
const headRows = 32

// state is the scratch memory of an evaluation, sized for the largest batch and
// allocated once.
type state struct {
	batch int

	x       kernels.Buffer // batch x Embed: residual stream
	h       kernels.Buffer // batch x Embed: normalised
	q       kernels.Buffer // batch x queries
	k, v    kernels.Buffer // batch x keyvals
	att     kernels.Buffer // batch x queries: attention's output
	gate    kernels.Buffer // batch x FF
	up      kernels.Buffer // batch x FF
	cos     kernels.Buffer // batch x Rope.Dims/2
	sin     kernels.Buffer // batch x Rope.Dims/2
	logits  kernels.Buffer // logitRows x Vocab
	rows    int            // capacity of logits
	freq    []float64      // Rope.Dims/2: angle per position
	hostX   []float32      // batch x Embed
	hostCos []float32      // batch x Rope.Dims/2
	hostSin []float32
	hostOut []float32 // logitRows x Vocab
}

func (m *Model) newState(batch int) error {
	h, s := &m.hyper, &m.state
	half := h.Rope.Dims / 2
	s.batch = batch
	for _, b := range []struct {
		to    *kernels.Buffer
		width int
	}{
		{&s.x, h.Embed}, {&s.h, h.Embed}, {&s.q, h.size(queries)}, {&s.k, h.size(keyvals)}, {&s.v, h.size(keyvals)},
		{&s.att, h.size(queries)}, {&s.gate, h.FF}, {&s.up, h.FF}, {&s.cos, half}, {&s.sin, half},
	} {
		var err error
		if *b.to, err = m.backend.NewBuffer(batch * b.width); err != nil {
			return err
		}
	}
	s.freq = h.Rope.frequencies(m.weights.ropeDiv)
	s.hostX = make([]float32, batch*h.Embed)
	s.hostCos = make([]float32, batch*half)
	s.hostSin = make([]float32, batch*half)
	return m.logitRows(1)
}

// logitRows sees to room for the logits of n positions.
func (m *Model) logitRows(n int) error {
	s := &m.state
	if n <= s.rows {
		return nil
	}
	b, err := m.backend.NewBuffer(n * m.hyper.Vocab)
	if err != nil {
		return err
	}
	s.logits, s.hostOut, s.rows = b, make([]float32, n*m.hyper.Vocab), n
	return nil
}

// Want says which logits a caller needs.
type Want struct {
	// From is the index of the first token whose logits are wanted: those of the
	// tokens from it to the last are computed.
	From int
	// Row is called for each of them in order, with the index of the token and the
	// scores of the token after it: Vocab values, valid during the call. An error
	// ends the evaluation.
	Row func(i int, logits []float32) error
}

// LastOnly wants the logits of the last of n tokens.
func LastOnly(n int, row func(logits []float32) error) Want {
	return Want{From: n - 1, Row: func(_ int, logits []float32) error { return row(logits) }}
}

// Forward evaluates tokens as the continuation of seq, in batches, and commits
// each batch to seq when it is complete. On an error seq holds the batches that
// were completed before.
//
// When ctx ends, the operation that runs is stopped and Forward returns ctx.Err().
// A token that the vocabulary lacks and a cache without room are errors, found
// before the batch they are in is evaluated.
func (m *Model) Forward(ctx context.Context, seq *kvcache.Sequence, tokens []int32, want Want) error {
	// The flag belongs to this call: a late AfterFunc of an earlier one cannot stop it.
	stop := new(atomic.Bool)
	m.backend.SetStop(stop)
	defer m.backend.SetStop(nil)
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()

	for start := 0; start < len(tokens); start += m.state.batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch := tokens[start:min(start+m.state.batch, len(tokens))]
		if err := m.forward(ctx, stop, seq, batch, start, want); err != nil {
			seq.Truncate(seq.Len()) // gives reserved pages back
			if cerr := ctx.Err(); cerr != nil {
				return cerr
			}
			return err
		}
	}
	return nil
}

// forward evaluates one batch, whose first token has the index start.
func (m *Model) forward(ctx context.Context, stop *atomic.Bool, seq *kvcache.Sequence, tokens []int32, start int, want Want) error {
	h, w, s, b := &m.hyper, &m.weights, &m.state, m.backend
	n, pos := len(tokens), seq.Len()
	rows := min(n, max(0, start+n-want.From)) // trailing positions whose logits are wanted
	if want.Row == nil {
		rows = 0
	}
	if err := m.logitRows(min(rows, headRows)); err != nil {
		return fmt.Errorf("allocate logits: %w", err)
	}
	if err := m.embed(tokens); err != nil {
		return err
	}
	if err := seq.Reserve(n); err != nil {
		return fmt.Errorf("evaluate position %d: %w", pos, err)
	}
	half := h.Rope.Dims / 2
	h.Rope.angles(s.hostCos, s.hostSin, s.freq, pos, n)
	b.Write(s.x, 0, s.hostX[:n*h.Embed])
	b.Write(s.cos, 0, s.hostCos[:n*half])
	b.Write(s.sin, 0, s.hostSin[:n*half])

	at := kernels.Attention{
		Heads: h.Heads, KVHeads: h.KVHeads, HeadDim: h.HeadDim,
		Scale: m.scale(), Pages: seq.Pages(), Pos: pos,
	}
	x, q, live := s.x, s.q, n // what the following operations work on
	for l := range w.layers {
		if stop.Load() {
			return stopped(ctx)
		}
		lw := &w.layers[l]
		b.RMSNorm(s.h, x, lw.attnNorm, n, h.Eps)
		b.MatMul([]kernels.Buffer{q, s.k, s.v}, lw.qkv[:], s.h, n, false)
		b.Rope(q, s.cos, s.sin, n, h.Heads, h.HeadDim, h.Rope.Dims, h.Rope.Kind)
		b.Rope(s.k, s.cos, s.sin, n, h.KVHeads, h.HeadDim, h.Rope.Dims, h.Rope.Kind)
		b.StoreKV(seq.KV(), l, at.Pages, pos, s.k, s.v, n)
		if l == len(w.layers)-1 && rows < n {
			// Only the wanted positions matter behind the last keys and values.
			if live = rows; live == 0 {
				break
			}
			at.Pos += n - live
			x = b.Slice(x, (n-live)*h.Embed, live*h.Embed)
			q = b.Slice(q, (n-live)*h.size(queries), live*h.size(queries))
		}
		at.Layer = l
		b.Attend(s.att, q, seq.KV(), live, at)
		b.MatMul([]kernels.Buffer{x}, lw.out[:], s.att, live, true)
		b.RMSNorm(s.h, x, lw.ffnNorm, live, h.Eps)
		b.MatMul([]kernels.Buffer{s.gate, s.up}, lw.gateUp[:], s.h, live, false)
		b.SwiGLU(s.gate, s.gate, s.up, live*h.FF)
		b.MatMul([]kernels.Buffer{x}, lw.down[:], s.gate, live, true)
	}
	if rows == 0 {
		// Wait, so that a stopped batch is not committed.
		if err := b.Read(s.hostX[:1], s.x, 0); err != nil {
			return fmt.Errorf("evaluate: %w", err)
		}
	}
	if stop.Load() {
		return stopped(ctx)
	}
	if rows > 0 {
		b.RMSNorm(s.h, x, w.norm, rows, h.Eps)
	}
	for done := 0; done < rows; done += s.rows {
		c := min(s.rows, rows-done)
		hx := s.h
		if rows > s.rows {
			hx = b.Slice(s.h, done*h.Embed, c*h.Embed)
		}
		b.MatMul([]kernels.Buffer{s.logits}, w.head[:], hx, c, false)
		if err := b.Read(s.hostOut[:c*h.Vocab], s.logits, 0); err != nil {
			return fmt.Errorf("evaluate: %w", err)
		}
		if stop.Load() {
			return stopped(ctx)
		}
		for i := range c {
			if err := want.Row(start+n-rows+done+i, s.hostOut[i*h.Vocab:(i+1)*h.Vocab]); err != nil {
				return err
			}
		}
	}
	seq.Commit(tokens)
	return nil
}

// embed unpacks the embeddings of tokens into hostX.
func (m *Model) embed(tokens []int32) error {
	t, width := &m.weights.embed, m.hyper.Embed
	data, err := t.Data()
	if err != nil {
		return err
	}
	row := t.Format.RowBytes(width)
	for i, tok := range tokens {
		if tok < 0 || int(tok) >= m.hyper.Vocab {
			return fmt.Errorf("evaluate token %d: outside the vocabulary of %d", tok, m.hyper.Vocab)
		}
		quant.Dequantize(t.Format, m.state.hostX[i*width:(i+1)*width], data[int(tok)*row:(int(tok)+1)*row])
	}
	return nil
}

// scale is the factor of attention scores.
func (m *Model) scale() float32 { return float32(1 / math.Sqrt(float64(m.hyper.HeadDim))) }

// stopped is the error of an evaluation whose stop flag was found set.
func stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	panic("BUG: evaluation stopped without a cancelled context")
}
