package inspect

import (
	"context"
	"fmt"
	"math"

	"atoll/inference/sample"
	"atoll/inference/tokenizer"
)

// PerplexityResult is how surprised a model is by a text.
type PerplexityResult struct {
	Perplexity float64 `json:"perplexity"`
	StdErr     float64 `json:"stderr"`
	Windows    int     `json:"windows"`
	Context    int     `json:"ctx"`    // tokens of a window
	Tokens     int     `json:"tokens"` // of the text
	Scored     int     `json:"scored"`
	Model      string  `json:"model"`
	Tier       string  `json:"tier"`
	Threads    int     `json:"threads"`
}

// Perplexity scores a text as llama.cpp's tool of that name does: windows of ctx tokens
// that do not overlap, each begun with BOS in place of its first token if the
// vocabulary adds one; in each, the tokens of the second half are predicted from all
// before them. A last window that is not full is left out. progress, if not nil, is
// told the perplexity after each window.
func Perplexity(c context.Context, opts Options, text string, ctx int, progress func(done, total int, perplexity float64)) (*PerplexityResult, error) {
	if ctx == 0 {
		ctx = 512
	}
	e, err := opts.open(c, ctx)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	tok := e.Tokenizer()
	ids := tok.Encode(text, true, false)
	windows := len(ids) / ctx
	if windows == 0 {
		return nil, fmt.Errorf("perplexity: the text has %d tokens, fewer than one window of %d", len(ids), ctx)
	}
	res := &PerplexityResult{
		Windows: windows, Context: ctx, Tokens: len(ids),
		Model: e.Info().Hyper.Name, Tier: e.Info().Backend.Tier, Threads: e.Info().Backend.Threads,
	}
	var sum, squares float64 // of the negative log-likelihoods
	for w := range windows {
		window := append([]int32(nil), ids[w*ctx:(w+1)*ctx]...)
		if bos := tok.BOS(); tok.AddBOS() && bos != tokenizer.None {
			window[0] = bos
		}
		err := e.Score(c, window[:ctx-1], ctx/2, func(i int, logits []float32) error {
			nll := -sample.LogProb(logits, window[i+1])
			sum += nll
			squares += nll * nll
			res.Scored++
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("perplexity: window %d: %w", w+1, err)
		}
		mean := sum / float64(res.Scored)
		res.Perplexity = math.Exp(mean)
		if variance := squares/float64(res.Scored) - mean*mean; variance > 0 && res.Scored > 1 {
			res.StdErr = math.Sqrt(variance/float64(res.Scored-1)) * res.Perplexity
		}
		if progress != nil {
			progress(w+1, windows, res.Perplexity)
		}
	}
	if math.IsNaN(res.Perplexity) || math.IsInf(res.Perplexity, 0) {
		return nil, fmt.Errorf("perplexity: the model gives no usable probabilities (%v)", res.Perplexity)
	}
	return res, nil
}
