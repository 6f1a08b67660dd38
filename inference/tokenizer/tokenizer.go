// Package tokenizer turns text into token ids and back, as the vocabulary of a
// model file says.
//
// It implements byte-level BPE (tokenizer.ggml.model "gpt2") with the
// pre-tokenizers listed by [Pretokenizers], with the results of llama.cpp. What it
// does not know is an error: there is no fallback that would give wrong ids.
//
// A [Tokenizer] does not change after [New] and may be used from several goroutines.
// Time and memory of [Tokenizer.Encode] grow with n log n of the text's length,
// whatever the text is.
package tokenizer

import (
	"slices"
	"strings"

	"atoll/inference/gguf"
)

// None is the id of a token that a vocabulary does not have.
const None int32 = -1

// The kinds of tokens, as tokenizer.ggml.token_type stores them.
const (
	kindNormal  = 1
	kindUnknown = 2
	kindControl = 3 // structure of a conversation, never text
	kindUser    = 4 // text that is always one token
	kindUnused  = 5
	kindByte    = 6
)

// Tokenizer is a vocabulary with its rules.
type Tokenizer struct {
	pre    string
	split  splitter
	texts  []string // id -> text as stored: bytes are written as in byteRunes
	kinds  []uint8
	ids    map[string]int32 // the inverse of texts
	pieces []byte           // the bytes of all tokens, one after the other
	starts []uint32         // id -> start in pieces; one more than there are tokens

	bpe       merges
	wholeWord bool // a word that is a token is never split (llama-bpe)
	maxText   int  // length of the longest text

	specials matcher // control, user-defined and unknown tokens, and texts that end a turn
	users    matcher // user-defined tokens only

	bos, eos, eot  int32
	addBOS, addEOS bool
	eog            map[int32]bool
}

// The keys of the vocabulary.
const (
	keyModel  = "tokenizer.ggml.model"
	keyPre    = "tokenizer.ggml.pre"
	keyTokens = "tokenizer.ggml.tokens"
	keyTypes  = "tokenizer.ggml.token_type"
	keyMerges = "tokenizer.ggml.merges"
	keyAddBOS = "tokenizer.ggml.add_bos_token"
	keyAddEOS = "tokenizer.ggml.add_eos_token"
	keyBOS    = "tokenizer.ggml.bos_token_id"
	keyEOS    = "tokenizer.ggml.eos_token_id"
	keyEOT    = "tokenizer.ggml.eot_token_id"
	keyEOM    = "tokenizer.ggml.eom_token_id"
)

// New reads the vocabulary of a model file. The file is not needed afterwards.
// Every error is a [gguf.Error].
func New(f *gguf.File) (*Tokenizer, error) {
	model, err := f.String(keyModel)
	if err != nil {
		return nil, err
	}
	if model != "gpt2" {
		return nil, f.KeyError(keyModel, "tokenizer model %.40q is not supported: byte-level BPE (gpt2) is", model)
	}
	pre, err := f.String(keyPre)
	if err != nil {
		return nil, err
	}
	rule, ok := pretokenizers[pre]
	if !ok {
		return nil, f.KeyError(keyPre, "pre-tokenizer %.40q is not supported: %s are", pre, strings.Join(Pretokenizers(), ", "))
	}
	t := &Tokenizer{pre: pre, split: rule.split, wholeWord: rule.wholeWord}
	if t.texts, err = f.Strings(keyTokens); err != nil {
		return nil, err
	}
	if len(t.texts) == 0 {
		return nil, f.KeyError(keyTokens, "the vocabulary is empty")
	}
	if len(t.texts) > maxTokens {
		return nil, f.KeyError(keyTokens, "%d tokens, at most %d are supported", len(t.texts), maxTokens)
	}
	if err := t.readKinds(f); err != nil {
		return nil, err
	}
	t.ids = make(map[string]int32, len(t.texts))
	for id, text := range t.texts {
		if text == "" {
			continue // cannot come from text
		}
		if first, dup := t.ids[text]; dup {
			return nil, f.KeyError(keyTokens, "tokens %d and %d are the same: %.40q", first, id, text)
		}
		t.ids[text] = int32(id)
		t.maxText = max(t.maxText, len(text))
	}
	t.makePieces()
	if err := t.readMerges(f); err != nil {
		return nil, err
	}
	if err := t.readSpecials(f, rule.addBOS); err != nil {
		return nil, err
	}
	return t, nil
}

// maxTokens bounds the number of tokens: the largest vocabularies have 262,144.
const maxTokens = 1 << 24

func (t *Tokenizer) readKinds(f *gguf.File) error {
	t.kinds = make([]uint8, len(t.texts))
	for i := range t.kinds {
		t.kinds[i] = kindNormal
	}
	if !f.Has(keyTypes) {
		return nil
	}
	types, err := f.Ints(keyTypes)
	if err != nil {
		return err
	}
	if len(types) != len(t.texts) {
		return f.KeyError(keyTypes, "%d types for %d tokens", len(types), len(t.texts))
	}
	for id, k := range types {
		if k < 0 || k > kindByte {
			return f.KeyError(keyTypes, "token %d has the unknown type %d", id, k)
		}
		t.kinds[id] = uint8(k)
	}
	return nil
}

// Len returns the number of tokens: ids are 0 to Len()-1.
func (t *Tokenizer) Len() int { return len(t.texts) }

// Pre returns the name of the pre-tokenizer as the file gives it.
func (t *Tokenizer) Pre() string { return t.pre }

// BOS returns the token that begins a text, or [None].
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS returns the token that ends a text, or [None].
func (t *Tokenizer) EOS() int32 { return t.eos }

// EOT returns the token that ends a turn, or [None].
func (t *Tokenizer) EOT() int32 { return t.eot }

// AddBOS reports whether texts begin with [Tokenizer.BOS].
func (t *Tokenizer) AddBOS() bool { return t.addBOS }

// AddEOS reports whether texts end with [Tokenizer.EOS].
func (t *Tokenizer) AddEOS() bool { return t.addEOS }

// IsControl reports whether the token is structure: it has no text of its own and
// comes from text only if that is asked for.
func (t *Tokenizer) IsControl(id int32) bool {
	return t.valid(id) && (t.kinds[id] == kindControl || t.kinds[id] == kindUnknown)
}

// IsEOG reports whether the token ends generation: the end of the text, of a turn
// or of a message.
func (t *Tokenizer) IsEOG(id int32) bool { return t.eog[id] }

// EOG returns the tokens that end generation, in order.
func (t *Tokenizer) EOG() []int32 {
	var ids []int32
	for id := range t.eog {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// TokenID finds a token by its text as the vocabulary stores it, for example
// "<|im_end|>".
func (t *Tokenizer) TokenID(text string) (int32, bool) {
	id, ok := t.ids[text]
	return id, ok
}

// Text returns the text of a token as the vocabulary stores it, "" for an id out of
// range. For what a token adds to a text see [Tokenizer.Piece].
func (t *Tokenizer) Text(id int32) string {
	if !t.valid(id) {
		return ""
	}
	return t.texts[id]
}

// ControlTokens returns the texts of all control tokens, in the order of ids.
func (t *Tokenizer) ControlTokens() []string {
	var list []string
	for id, kind := range t.kinds {
		if kind == kindControl && t.texts[id] != "" {
			list = append(list, t.texts[id])
		}
	}
	return list
}

func (t *Tokenizer) valid(id int32) bool { return id >= 0 && int(id) < len(t.texts) }
