package local

import (
	"strings"

	"atoll/core/llm"
	"atoll/inference/chat"
	"atoll/inference/sample"
	"atoll/inference/tokenizer"
)

// choose prepares a step for the request's tool choice. A required call is begun in
// the model's place: the opening of the family's call is added to the prompt and
// told to opened as if the model had written it. For an answer in words the returned
// mask keeps the first token from beginning a call.
func (m *Model) choose(req *llm.Request, ids []int32, opened func(string) error) ([]int32, sample.Mask, error) {
	switch req.ToolChoice.Mode {
	case llm.ToolRequired:
		var given []chat.Argument
		for _, a := range req.ToolChoice.Given {
			given = append(given, chat.Argument(a))
		}
		opening := m.format.CallOpening(req.ToolChoice.Name, given...)
		if opening == "" || len(req.Tools) == 0 {
			return ids, nil, nil
		}
		tok := m.engine.Tokenizer()
		return append(ids[:len(ids):len(ids)], tok.Encode(opening, false, false)...), nil, opened(opening)
	case llm.ToolNone:
		return ids, &wordsFirst{tok: m.engine.Tokenizer()}, nil
	}
	return ids, nil, nil
}

// wordsFirst forbids tokens that begin a call, a fence or a tag until another has come.
type wordsFirst struct {
	tok   *tokenizer.Tokenizer
	begun bool
}

var _ sample.Mask = (*wordsFirst)(nil)

// Allowed implements the same method as documented on sample.Mask.
func (w *wordsFirst) Allowed(id int32) bool {
	if w.begun {
		return true
	}
	if w.tok.IsControl(id) || w.tok.IsEOG(id) {
		return false
	}
	text := strings.TrimLeft(string(w.tok.Piece(id)), " ")
	return text != "" && !strings.ContainsAny(text[:1], "<{[`\n\r\t\"'")
}
