package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/inference/model"
	"atoll/inference/sample"
)

// Request asks for the continuation of tokens.
type Request struct {
	// Tokens is the prompt; at least one.
	Tokens []int32
	// MaxTokens limits the answer; 0 means as many as the window holds.
	MaxTokens int
	// Sampling says how tokens are chosen. The zero value is greedy.
	Sampling sample.Options
	// Mask, if not nil, limits the tokens to choose from.
	Mask sample.Mask
	// StopStrings end the answer where one of them would appear in its text; they are
	// not part of it.
	StopStrings []string
	// IgnoreEOG forbids the tokens that end an answer.
	IgnoreEOG bool
	// Fresh evaluates the whole prompt again, whatever the cache holds.
	Fresh bool
	// Progress, if not nil, is told after each batch how many tokens of the prompt are
	// evaluated; cached ones count. An error of it ends the request like one of emit.
	Progress func(done, total int) error
}

// Token is a piece of the answer.
type Token struct {
	// ID is the sampled token, or -1 for text that was held back until the end.
	ID int32
	// Text is what can be shown now, complete UTF-8 characters. It is empty while a
	// character is incomplete or while it may be the beginning of a stop string.
	Text string
}

// Stop is why an answer ended.
type Stop string

// The reasons.
const (
	StopEnd     Stop = "end"     // the model ended its answer
	StopLength  Stop = "length"  // Request.MaxTokens
	StopContext Stop = "context" // the window is full
	StopString  Stop = "stop"    // one of Request.StopStrings
)

// Result counts what was done. It is also valid beside an error.
type Result struct {
	PromptTokens int
	CachedTokens int // of the prompt, taken from the cache
	// OutputTokens is the number of sampled tokens, the one that ended the answer
	// included.
	OutputTokens int
	// Output holds the sampled tokens but for the one that ended the answer.
	Output      []int32
	Stop        Stop
	PrefillTime time.Duration // until the first token could be chosen
	DecodeTime  time.Duration // from then on
}

// A ContextError says that a prompt does not fit the window. Nothing was evaluated.
type ContextError struct{ Prompt, Max int }

func (e *ContextError) Error() string {
	return fmt.Sprintf("prompt of %d tokens does not fit the context of %d", e.Prompt, e.Max)
}

// Generate evaluates the prompt and samples until a reason to stop is met. emit is
// called on the caller's goroutine for each sampled token that is not the end; an
// error of it ends the request and is returned as it is. When ctx ends, Generate
// returns ctx.Err(); what was emitted stays valid, and so does the cache.
func (e *Engine) Generate(ctx context.Context, req Request, emit func(Token) error) (Result, error) {
	res := Result{PromptTokens: len(req.Tokens)}
	switch {
	case len(req.Tokens) == 0:
		return res, errors.New("generate: the prompt has no tokens")
	case req.MaxTokens < 0:
		return res, fmt.Errorf("generate: at most %d tokens", req.MaxTokens)
	case len(req.Tokens) > e.info.Context:
		return res, &ContextError{Prompt: len(req.Tokens), Max: e.info.Context}
	}
	if err := req.Sampling.Validate(); err != nil {
		return res, fmt.Errorf("generate: %w", err)
	}
	sampler := sample.New(req.Sampling)
	if err := e.acquire(ctx); err != nil {
		return res, err
	}
	defer e.release()

	start := time.Now()
	var logits []float32
	keepRow := func(row []float32) error { logits = row; return nil }
	if req.Fresh {
		e.seq.Truncate(0)
	}
	res.CachedTokens = e.seq.Reuse(req.Tokens)
	progress := req.Progress
	if progress == nil {
		progress = func(int, int) error { return nil }
	}
	if err := progress(res.CachedTokens, len(req.Tokens)); err != nil {
		return res, err
	}
	for rest := req.Tokens[res.CachedTokens:]; len(rest) > 0; {
		batch := rest[:min(len(rest), e.model.Batch())]
		rest = rest[len(batch):]
		want := model.Want{}
		if len(rest) == 0 {
			want = model.LastOnly(len(batch), keepRow)
		}
		err := e.model.Forward(ctx, e.seq, batch, want)
		if err == nil {
			err = progress(len(req.Tokens)-len(rest), len(req.Tokens))
		}
		if err != nil {
			res.PrefillTime = time.Since(start)
			return res, err
		}
	}
	res.PrefillTime = time.Since(start)

	start = time.Now()
	err := e.decode(ctx, req, sampler, &logits, &res, emit)
	res.DecodeTime = time.Since(start)
	return res, err
}

// decode samples until there is a reason to stop. logits are those behind the last
// evaluated token.
func (e *Engine) decode(ctx context.Context, req Request, sampler *sample.Sampler, logits *[]float32, res *Result, emit func(Token) error) error {
	text := e.tok.NewDecoder()
	stops := newStopper(req.StopStrings)
	recent := append(make([]int32, 0, len(req.Tokens)+64), req.Tokens...)
	mask := req.Mask
	if req.IgnoreEOG {
		mask = noEnd{e, mask}
	}
	finish := func(stop Stop) error {
		res.Stop = stop
		if stop == StopString {
			return nil
		}
		tail, stopped := stops.push(text.Flush())
		if stopped {
			res.Stop = StopString
		} else {
			tail += stops.flush()
		}
		if tail == "" {
			return nil
		}
		return emit(Token{ID: -1, Text: tail})
	}
	var next [1]int32
	for {
		id := sampler.Pick(*logits, recent, mask)
		if id < 0 {
			return errors.New("generate: no token is allowed to follow")
		}
		res.OutputTokens++
		if e.tok.IsEOG(id) {
			return finish(StopEnd)
		}
		res.Output = append(res.Output, id)
		recent = append(recent, id)
		out, stopped := stops.push(text.Push(id))
		if !stopped || out != "" {
			if err := emit(Token{ID: id, Text: out}); err != nil {
				return err
			}
		}
		switch {
		case stopped:
			return finish(StopString)
		case req.MaxTokens > 0 && res.OutputTokens >= req.MaxTokens:
			return finish(StopLength)
		case e.seq.Len() >= e.info.Context:
			return finish(StopContext)
		}
		next[0] = id
		if err := e.model.Forward(ctx, e.seq, next[:], model.LastOnly(1, func(row []float32) error { *logits = row; return nil })); err != nil {
			return err
		}
	}
}

// noEnd forbids the tokens that end an answer, on top of another mask.
type noEnd struct {
	engine *Engine
	mask   sample.Mask
}

// Allowed implements the same method as documented on sample.Mask.
func (m noEnd) Allowed(id int32) bool {
	return !m.engine.tok.IsEOG(id) && (m.mask == nil || m.mask.Allowed(id))
}
