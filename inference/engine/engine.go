// Package engine runs a language model from a GGUF file: it loads it, evaluates
// prompts in batches, samples tokens and streams their text.
//
// An Engine holds one conversation in its key/value cache. A request whose tokens
// begin as the evaluated ones did keeps that prefix and evaluates the rest, with
// the same result as if it had evaluated everything.
//
// Methods may be called from any goroutine. Requests run one at a time, in no
// particular order; one that waits gives up when its context ends. [Engine.Close]
// waits for the one that runs.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"atoll/inference/chat"
	"atoll/inference/gguf"
	"atoll/inference/kvcache"
	"atoll/inference/model"
	"atoll/inference/tokenizer"
	"atoll/kernels"
	"atoll/kernels/auto"
)

// DefaultContext is the window of a model that was trained for at least as much,
// unless [Options].Ctx says otherwise.
const DefaultContext = 8192

// MinContext is the smallest window that can be asked for.
const MinContext = 16

// ErrClosed is returned by the methods of a closed engine.
var ErrClosed = errors.New("model is closed")

// Options tells what to open and how.
type Options struct {
	// Path is the GGUF file.
	Path string
	// Ctx is the window in tokens, prompt and answer together. 0 means DefaultContext,
	// or what the model was trained for if that is less. More than it was trained for is
	// an error: the model would answer nonsense there.
	Ctx int
	// Threads is the number of workers; 0 means one for each usable core.
	Threads int
	// Tier forces an instruction tier, as documented on [auto.Options].
	Tier string
	// Batch is the number of prompt tokens evaluated at once; 0 means model.DefaultBatch.
	Batch int
	// Progress, if not nil, is told how many bytes of weights are ready.
	Progress func(done, total int64)
}

// Info describes an engine. It does not change after Open.
type Info struct {
	Path           string
	Hyper          model.Hyper
	Parameters     int64
	FileWeights    int64 // bytes of the file's tensors
	Batch          int   // prompt tokens evaluated at once
	Context        int   // window in tokens
	TrainedContext int
	Backend        kernels.Info
	Memory         Memory
	LoadTime       time.Duration
}

// Memory is a plan of resident memory, in bytes.
type Memory struct {
	// Weights is the file's tensors before loading; after it, the copies that the
	// backend made and the tensors that it uses in place.
	Weights int64
	KV      int64 // key/value cache when the window is full
	Scratch int64 // activations and logits
}

// Total is the sum.
func (m Memory) Total() int64 { return m.Weights + m.KV + m.Scratch }

// Engine is a loaded model.
type Engine struct {
	info    Info
	file    *gguf.File
	tok     *tokenizer.Tokenizer
	format  *chat.Format
	noChat  error // why there is no format
	backend kernels.Backend
	model   *model.Model
	cache   *kvcache.Cache
	seq     *kvcache.Sequence // the conversation

	// busy is held, by having sent to it, by the one request that uses the fields
	// above; closed is guarded by it.
	busy   chan struct{}
	closed bool
}

// Plan reads and checks a model file and says what opening it with opts would take,
// without loading weights. Backend and LoadTime of the result are zero.
func Plan(opts Options) (Info, error) {
	f, err := gguf.Open(opts.Path)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	_, info, err := plan(f, opts)
	return info, err
}

func plan(f *gguf.File, opts Options) (*model.Description, Info, error) {
	d, err := model.Describe(f)
	if err != nil {
		return nil, Info{}, err
	}
	window, err := window(opts.Ctx, d.Hyper.Context)
	if err != nil {
		return nil, Info{}, err
	}
	batch := opts.Batch
	if batch <= 0 {
		batch = model.DefaultBatch
	}
	positions := kvcache.PagesFor(window) * kernels.KVPage
	return d, Info{
		Path: opts.Path, Hyper: d.Hyper, Parameters: d.Parameters, FileWeights: d.WeightBytes, Batch: batch,
		Context: window, TrainedContext: d.Hyper.Context,
		Memory: Memory{Weights: d.WeightBytes, KV: d.KVBytes(positions), Scratch: d.ScratchBytes(batch)},
	}, nil
}

// A WindowError says that the window asked for cannot be had.
type WindowError struct{ Asked, Min, Trained int }

func (e *WindowError) Error() string {
	if e.Asked > e.Trained {
		return fmt.Sprintf("context of %d tokens: the model was trained for %d; ask for at most that", e.Asked, e.Trained)
	}
	return fmt.Sprintf("context of %d tokens: at least %d are needed", e.Asked, e.Min)
}

func window(asked, trained int) (int, error) {
	switch {
	case asked == 0:
		return min(DefaultContext, trained), nil
	case asked < min(MinContext, trained) || asked > trained:
		return 0, &WindowError{Asked: asked, Min: min(MinContext, trained), Trained: trained}
	}
	return asked, nil
}

// Open loads a model. Faults of the file are a [*gguf.Error] that names file, key
// and remedy; a window that cannot be had is a [*WindowError].
func Open(ctx context.Context, opts Options) (_ *Engine, err error) {
	start := time.Now()
	f, err := gguf.Open(opts.Path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	d, info, err := plan(f, opts)
	if err != nil {
		return nil, err
	}
	e := &Engine{file: f, busy: make(chan struct{}, 1)}
	if e.tok, err = tokenizer.New(f); err != nil {
		return nil, err
	}
	if n := e.tok.Len(); n > d.Hyper.Vocab {
		return nil, f.KeyError("tokenizer.ggml.tokens", "%d tokens for an embedding of %d rows", n, d.Hyper.Vocab)
	}
	e.format, e.noChat = ChatFormat(f, e.tok)
	if e.backend, err = auto.Open(auto.Options{Threads: opts.Threads, Tier: opts.Tier}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.backend.Close()
		}
	}()
	if e.model, err = d.Load(ctx, e.backend, model.Options{Batch: opts.Batch, Progress: opts.Progress}); err != nil {
		return nil, err
	}
	if e.cache, err = e.model.NewCache(info.Context); err != nil {
		return nil, err
	}
	e.seq = e.cache.NewSequence()
	info.Backend = e.backend.Info()
	info.Memory.Weights = e.model.WeightBytes()
	info.Memory.KV = e.cache.KV().Bytes()
	info.LoadTime = time.Since(start)
	e.info = info
	return e, nil
}

// Info describes the engine.
func (e *Engine) Info() Info { return e.info }

// Tokenizer returns the model's tokenizer, which may be used at any time.
func (e *Engine) Tokenizer() *tokenizer.Tokenizer { return e.tok }

// Format returns the model's chat format. A model whose file has no template, or
// one that cannot be used, gives an error.
func (e *Engine) Format() (*chat.Format, error) { return e.format, e.noChat }

// acquire makes the caller the one that uses the model until release.
func (e *Engine) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case e.busy <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.closed {
		e.release()
		return ErrClosed
	}
	return nil
}

func (e *Engine) release() { <-e.busy }

// Close waits for the request that runs and frees everything. Closing again does
// nothing.
func (e *Engine) Close() error {
	e.busy <- struct{}{}
	defer e.release()
	if e.closed {
		return nil
	}
	e.closed = true
	return errors.Join(e.backend.Close(), e.file.Close())
}

// Truncate forgets the conversation in the cache from its n-th token on.
func (e *Engine) Truncate(ctx context.Context, n int) error {
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer e.release()
	e.seq.Truncate(min(max(n, 0), e.seq.Len()))
	return nil
}

// Evaluate appends tokens to the conversation in the cache, in batches, and computes
// the logits of the last one only, which it drops: the cost of a prompt without its
// answer, for measurements.
func (e *Engine) Evaluate(ctx context.Context, tokens []int32) error {
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer e.release()
	if n := e.seq.Len() + len(tokens); n > e.info.Context {
		return &ContextError{Prompt: n, Max: e.info.Context}
	}
	return e.model.Forward(ctx, e.seq, tokens, model.LastOnly(len(tokens), func([]float32) error { return nil }))
}

// Score evaluates tokens from an empty context and hands the logits behind the
// tokens from index from on to row, in order: the scores of the token after tokens[i],
// valid during the call. It takes the place of the conversation in the cache.
func (e *Engine) Score(ctx context.Context, tokens []int32, from int, row func(i int, logits []float32) error) error {
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer e.release()
	if len(tokens) > e.info.Context {
		return &ContextError{Prompt: len(tokens), Max: e.info.Context}
	}
	e.seq.Truncate(0)
	return e.model.Forward(ctx, e.seq, tokens, model.Want{From: from, Row: row})
}

// IsModelFault reports whether err is about the model file or this machine's ability
// to run it, rather than about a request.
func IsModelFault(err error) bool {
	var bad *gguf.Error
	var win *WindowError
	return errors.As(err, &bad) || errors.As(err, &win) || errors.Is(err, kernels.ErrUnavailable) || errors.Is(err, os.ErrNotExist)
}
