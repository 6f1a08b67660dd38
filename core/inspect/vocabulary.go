package inspect

import (
	"encoding/hex"

	"atoll/inference/gguf"
	"atoll/inference/tokenizer"
)

// Vocabulary turns text into ids and back. The file may hold a vocabulary without
// weights.
type Vocabulary struct{ tok *tokenizer.Tokenizer }

// OpenVocabulary reads the vocabulary of a model file.
func OpenVocabulary(path string) (*Vocabulary, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tok, err := tokenizer.New(f)
	if err != nil {
		return nil, err
	}
	return &Vocabulary{tok}, nil
}

// TokenizeRequest is a line of input.
type TokenizeRequest struct {
	Text         string `json:"text"`
	AddSpecial   bool   `json:"add_special"`   // add BOS and EOS as the vocabulary says
	ParseSpecial bool   `json:"parse_special"` // the text of a control token becomes that token
}

// TokenizeResult is a line of output.
type TokenizeResult struct {
	IDs []int32 `json:"ids"`
}

// DetokenizeRequest is a line of input.
type DetokenizeRequest struct {
	IDs []int32 `json:"ids"`
}

// DetokenizeResult is a line of output.
type DetokenizeResult struct {
	Text string `json:"text"`
	// Pending holds the bytes at the end that begin a character and lack its rest, in
	// hexadecimal.
	Pending string `json:"pending_hex,omitempty"`
}

// Tokenize returns the ids of a text.
func (v *Vocabulary) Tokenize(req TokenizeRequest) TokenizeResult {
	ids := v.tok.Encode(req.Text, req.AddSpecial, req.ParseSpecial)
	if ids == nil {
		ids = []int32{} // [] rather than null
	}
	return TokenizeResult{ids}
}

// Detokenize returns the text of ids; control tokens appear by name.
func (v *Vocabulary) Detokenize(req DetokenizeRequest) (DetokenizeResult, error) {
	d := v.tok.NewDecoder()
	d.Special = true
	var text []byte
	for i, id := range req.IDs {
		if id < 0 || int(id) >= v.tok.Len() {
			return DetokenizeResult{}, &IDError{Index: i, ID: id, Size: v.tok.Len()}
		}
		text = append(text, d.Push(id)...)
	}
	return DetokenizeResult{Text: string(text), Pending: hex.EncodeToString(d.Pending())}, nil
}

// Piece returns the bytes of a token as text.
func (v *Vocabulary) Piece(id int32) string { return string(v.tok.Piece(id)) }

// TokenizeLine handles a line of JSON.
func (v *Vocabulary) TokenizeLine(line []byte) (any, error) {
	var req TokenizeRequest
	if err := decode(line, &req); err != nil {
		return nil, err
	}
	return v.Tokenize(req), nil
}

// DetokenizeLine handles a line of JSON.
func (v *Vocabulary) DetokenizeLine(line []byte) (any, error) {
	var req DetokenizeRequest
	if err := decode(line, &req); err != nil {
		return nil, err
	}
	return v.Detokenize(req)
}
