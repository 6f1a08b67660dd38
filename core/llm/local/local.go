// Package local is the model that runs in this process: it turns a conversation
// into tokens for inference/engine and the engine's text into chunks.
//
// A model keeps the tokens of the previous step. Where the next conversation
// begins with the same bytes, those tokens are used again instead of encoding the
// text anew: the engine's cache then holds what the model itself wrote, too, which
// an encoder may cut into other tokens.
package local

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"

	"atoll/core/llm"
	"atoll/inference/chat"
	"atoll/inference/engine"
	"atoll/inference/sample"
)

// Options says which model to open and how. Path is required.
type Options struct {
	// Path is the GGUF file.
	Path string
	// ID names the model for people; empty means the file's name without its extension.
	ID string
	// Context is the window in tokens; 0 means the engine's default.
	Context int
	// Threads is the number of workers; 0 means one for each usable core.
	Threads int
	// CPU forces an instruction tier: generic, avx2 or avx512vnni; empty takes the best.
	CPU string
	// Progress, if not nil, is told how many bytes of weights are ready.
	Progress func(done, total int64)
}

// Model implements [llm.Model].
type Model struct {
	engine *engine.Engine
	format *chat.Format
	info   llm.Info

	mu   sync.Mutex
	held []int32 // prompt and answer of the previous step; guarded by mu
}

var _ llm.Model = (*Model)(nil)

// Open loads a model. Faults are an [*llm.Error] of kind Load whose text names the
// file, what is wrong with it and what would fix it.
func Open(ctx context.Context, opts Options) (*Model, error) {
	e, err := engine.Open(ctx, engine.Options{
		Path: opts.Path, Ctx: opts.Context, Threads: opts.Threads, Tier: opts.CPU, Progress: opts.Progress,
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &llm.Error{Kind: llm.Load, Message: "load model", Err: err}
	}
	format, err := e.Format()
	if err != nil {
		e.Close()
		return nil, &llm.Error{Kind: llm.Load, Message: "load model", Err: err}
	}
	id := opts.ID
	if id == "" {
		id = strings.TrimSuffix(filepath.Base(opts.Path), filepath.Ext(opts.Path))
	}
	return &Model{
		engine: e, format: format,
		info: llm.Info{ID: id, Family: format.Family(), Context: e.Info().Context},
	}, nil
}

// Info implements the same method as documented on llm.Model.
func (m *Model) Info() llm.Info { return m.info }

// Close implements the same method as documented on llm.Model.
func (m *Model) Close() error { return m.engine.Close() }

// CountTokens implements the same method as documented on llm.Model.
func (m *Model) CountTokens(ctx context.Context, req *llm.Request) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ids, err := m.prompt(req)
	return len(ids), err
}

// Generate implements the same method as documented on llm.Model.
func (m *Model) Generate(ctx context.Context, req *llm.Request, emit func(llm.Chunk) error) (*llm.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ids, err := m.prompt(req)
	if err != nil {
		return nil, err
	}
	var emitErr error // of the caller, to be returned as it is
	send := func(chunks ...llm.Chunk) error {
		for _, c := range chunks {
			if emitErr = emit(c); emitErr != nil {
				return emitErr
			}
		}
		return nil
	}
	newParser := func() *parser { return &parser{p: m.format.NewParser(tools(req.Tools))} }
	parser := newParser()
	fence := &fenced{specs: req.Tools, parse: newParser}
	ids, mask, err := m.choose(req, ids, func(opening string) error { return send(parser.write(opening)...) })
	if err != nil {
		return nil, failure(ctx, err, emitErr)
	}
	res, err := m.engine.Generate(ctx, engine.Request{
		Tokens:    ids,
		Mask:      mask,
		MaxTokens: req.MaxTokens,
		Sampling: sample.Options{
			Temperature: float64(req.Sampling.Temperature), TopK: req.Sampling.TopK,
			TopP: float64(req.Sampling.TopP), MinP: float64(req.Sampling.MinP),
			RepeatPenalty: float64(req.Sampling.RepeatPenalty), Seed: req.Sampling.Seed,
		},
		Progress: func(done, total int) error { return send(llm.Progress{Done: done, Total: total}) },
	}, func(t engine.Token) error {
		if words, ok := mask.(*wordsFirst); ok {
			words.begun = true
		}
		// Bytes that are no characters come out of random tokens; chunks are UTF-8.
		text := strings.ToValidUTF8(t.Text, "\uFFFD")
		for _, piece := range behindEnds(text) {
			if err := send(parser.write(piece)...); err != nil {
				return err
			}
			if fence.add(piece) {
				return errEnough
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err, res.Stop = nil, engine.StopEnd
	}
	if res.OutputTokens > 0 {
		m.mu.Lock()
		m.held = append(append(make([]int32, 0, len(ids)+len(res.Output)), ids...), res.Output...)
		m.mu.Unlock()
	}
	if err == nil {
		err = send(parser.end(res.Stop != engine.StopEnd)...)
	}
	if err != nil {
		return nil, failure(ctx, err, emitErr)
	}
	return &llm.Result{
		Stop: stop(res.Stop),
		Usage: llm.Usage{
			Prompt: res.PromptTokens, Cached: res.CachedTokens, Output: res.OutputTokens,
			PrefillMS: res.PrefillTime.Milliseconds(), DecodeMS: res.DecodeTime.Milliseconds(),
		},
	}, nil
}

// failure turns an error of a step into the contract's.
func failure(ctx context.Context, err, emitErr error) error {
	var over *engine.ContextError
	switch {
	case emitErr != nil:
		return emitErr
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &over):
		return &llm.Error{Kind: llm.ContextOverflow, Prompt: over.Prompt, Max: over.Max, Err: err}
	}
	return &llm.Error{Kind: llm.Internal, Message: "model step", Err: err}
}

func stop(s engine.Stop) llm.Stop {
	switch s {
	case engine.StopLength:
		return llm.StopLength
	case engine.StopContext:
		return llm.StopContext
	}
	return llm.StopEnd
}

// prompt renders a request and turns it into tokens.
func (m *Model) prompt(req *llm.Request) ([]int32, error) {
	segments, err := m.format.Render(chat.Request{
		Messages: messages(req), Tools: tools(req.Tools), AddGenerationPrompt: true,
	})
	if err != nil {
		return nil, &llm.Error{Kind: llm.Internal, Message: "render prompt", Err: err}
	}
	m.mu.Lock()
	held := m.held
	m.mu.Unlock()
	return promptTokens(m.engine.Tokenizer(), segments, held), nil
}

func tools(specs []llm.ToolSpec) []chat.Tool {
	var out []chat.Tool
	for _, t := range specs {
		out = append(out, chat.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return out
}
