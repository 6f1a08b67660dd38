package local

import (
	"strings"

	"atoll/inference/chat"
	"atoll/inference/engine"
	"atoll/inference/tokenizer"
)

// promptTokens turns segments into tokens. It takes as many of the held tokens as
// stand for whole segments at the front, text for text and control token for
// control token, and encodes the rest.
func promptTokens(tok *tokenizer.Tokenizer, segments []chat.Segment, held []int32) []int32 {
	n, done := match(tok, segments, held)
	if n == 0 {
		return engine.PromptTokens(tok, segments)
	}
	ids := append(make([]int32, 0, len(held)+256), held[:n]...)
	for _, s := range segments[done:] {
		ids = engine.AppendSegment(ids, tok, s)
	}
	return ids
}

// match returns how many of the held tokens stand for how many whole segments.
func match(tok *tokenizer.Tokenizer, segments []chat.Segment, held []int32) (n, done int) {
	i := 0
	if bos := tok.BOS(); tok.AddBOS() && len(held) > 0 && held[0] == bos {
		if len(segments) == 0 || !segments[0].Special || segments[0].Text != tok.Text(bos) {
			i = 1 // the template did not write it
		}
	}
	for _, s := range segments {
		if s.Special {
			if i >= len(held) {
				return n, done
			}
			if id, ok := tok.TokenID(s.Text); !ok || id != held[i] {
				return n, done
			}
			i++
		} else {
			for rest := s.Text; rest != ""; i++ {
				if i >= len(held) || tok.IsControl(held[i]) {
					return n, done
				}
				piece := string(tok.Piece(held[i]))
				if piece == "" || !strings.HasPrefix(rest, piece) {
					return n, done
				}
				rest = rest[len(piece):]
			}
		}
		n, done = i, done+1
	}
	return n, done
}
