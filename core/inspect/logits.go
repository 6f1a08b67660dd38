package inspect

import (
	"context"
	"errors"
	"fmt"
	"math"

	"atoll/inference/sample"
)

// TokenScore is a token with its log-probability.
type TokenScore struct {
	ID      int32   `json:"id"`
	Text    string  `json:"text"`
	LogProb float64 `json:"logprob"`
}

// PositionScores are a model's expectations behind one token of a text.
type PositionScores struct {
	Pos  int    `json:"pos"`
	ID   int32  `json:"id"`
	Text string `json:"text"`
	// Next is the token that really follows; nil behind the last one.
	Next *TokenScore `json:"next,omitempty"`
	// Top are the most likely tokens to follow, the best first.
	Top []TokenScore `json:"top"`
}

// Logits evaluates a text and hands the top log-probabilities behind each of its tokens
// to row. Control tokens in the text are taken as such if special is set.
func Logits(ctx context.Context, opts Options, text string, special bool, top int, row func(PositionScores) error) error {
	if top < 1 {
		return fmt.Errorf("logits: the top %d tokens, want at least 1", top)
	}
	v, err := OpenVocabulary(opts.Path)
	if err != nil {
		return err
	}
	ids := v.tok.Encode(text, true, special)
	if len(ids) == 0 {
		return errors.New("logits: the text has no tokens")
	}
	e, err := opts.open(ctx, max(len(ids), 16))
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Score(ctx, ids, 0, func(i int, logits []float32) error {
		p := PositionScores{Pos: i, ID: ids[i], Text: v.Piece(ids[i])}
		if i+1 < len(ids) {
			p.Next = &TokenScore{ids[i+1], v.Piece(ids[i+1]), finite(sample.LogProb(logits, ids[i+1]))}
		}
		for _, t := range sample.LogProbs(logits, top) {
			p.Top = append(p.Top, TokenScore{t.ID, v.Piece(t.ID), finite(t.LogProb)})
		}
		return row(p)
	})
}

// finite keeps a log-probability of minus infinity inside what JSON can write.
func finite(v float64) float64 { return math.Max(v, -math.MaxFloat32) }
