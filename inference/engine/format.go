package engine

import (
	"errors"

	"atoll/inference/chat"
	"atoll/inference/gguf"
	"atoll/inference/tokenizer"
)

// templateKey holds the chat template.
const templateKey = "tokenizer.chat_template"

// ErrNoTemplate is wrapped by the error of [Engine.Format] for a model that was not
// made for conversations.
var ErrNoTemplate = errors.New("the model has no chat template")

// ChatFormat makes the chat format of a model file. Without a template the error
// wraps [ErrNoTemplate].
func ChatFormat(f *gguf.File, tok *tokenizer.Tokenizer) (*chat.Format, error) {
	src, err := f.String(templateKey)
	if errors.Is(err, gguf.ErrMissing) {
		return nil, &gguf.Error{Path: f.Path(), Key: "key " + templateKey, Reason: "missing: the model was not made for conversations; use an instruct model", Err: ErrNoTemplate}
	}
	if err != nil {
		return nil, err
	}
	format, err := chat.NewFormat(src, FormatOptions(tok))
	if err != nil {
		return nil, &gguf.Error{Path: f.Path(), Key: "key " + templateKey, Reason: err.Error(), Err: err}
	}
	return format, nil
}

// FormatOptions is what a vocabulary contributes to a chat format.
func FormatOptions(tok *tokenizer.Tokenizer) chat.FormatOptions {
	opts := chat.FormatOptions{ControlTokens: tok.ControlTokens()}
	if id := tok.BOS(); id != tokenizer.None {
		opts.BOS = tok.Text(id)
	}
	if id := tok.EOS(); id != tokenizer.None {
		opts.EOS = tok.Text(id)
	}
	return opts
}

// PromptTokens turns a rendered conversation into tokens: control tokens that the
// template wrote become their ids, all other text is encoded as text, whatever it
// spells. The token that begins every sequence of the vocabulary is put in front if
// the template did not write it.
func PromptTokens(tok *tokenizer.Tokenizer, segments []chat.Segment) []int32 {
	var ids []int32
	if bos := tok.BOS(); tok.AddBOS() && bos != tokenizer.None {
		if len(segments) == 0 || !segments[0].Special || segments[0].Text != tok.Text(bos) {
			ids = append(ids, bos)
		}
	}
	for _, s := range segments {
		ids = AppendSegment(ids, tok, s)
	}
	return ids
}

// AppendSegment appends the tokens of one segment.
func AppendSegment(ids []int32, tok *tokenizer.Tokenizer, s chat.Segment) []int32 {
	if s.Special {
		if id, ok := tok.TokenID(s.Text); ok {
			return append(ids, id)
		}
	}
	return tok.EncodeTo(ids, s.Text, false, false)
}
