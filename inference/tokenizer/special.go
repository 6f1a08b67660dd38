package tokenizer

import (
	"cmp"
	"slices"

	"atoll/inference/gguf"
)

// endTexts are texts of tokens that end generation in the vocabularies of known
// models, as llama.cpp lists them. The first ten name an end of turn, in the order
// in which EOT takes them.
var endTexts = []string{
	"<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<EOT>", "_<EOT>", "[EOT]", "<end_of_utterance>", "<|endoftext|>", "<|end_of_text|>",
	"<｜end▁of▁sentence｜>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "</s>", "<|eom_id|>", "[EOS]", "<eos>", "<turn|>", "<|tool_response>", "[e~[",
	// Fill-in-the-middle: padding and the borders of files and repositories.
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]",
	"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
}

const turnTexts = 10

func (t *Tokenizer) readSpecials(f *gguf.File, addBOS bool) (err error) {
	t.eog = map[int32]bool{}
	id := func(key string) int32 {
		if err != nil || !f.Has(key) {
			return None
		}
		var v uint64
		if v, err = f.Uint(key); err != nil {
			return None
		}
		if v >= uint64(len(t.texts)) {
			err = f.KeyError(key, "token %d is not in the vocabulary of %d", v, len(t.texts))
			return None
		}
		return int32(v)
	}
	t.bos, t.eos, t.eot = id(keyBOS), id(keyEOS), id(keyEOT)
	eom := id(keyEOM)
	if err != nil {
		return err
	}
	if t.addBOS, err = f.BoolOr(keyAddBOS, addBOS); err != nil {
		return err
	}
	if t.addEOS, err = f.BoolOr(keyAddEOS, false); err != nil {
		return err
	}
	if t.addBOS && t.bos == None {
		return f.KeyError(keyBOS, "missing from the file, and texts of this vocabulary begin with it")
	}
	if t.addEOS && t.eos == None {
		return f.KeyError(keyEOS, "missing from the file, and texts of this vocabulary end with it")
	}
	for _, id := range []int32{t.eos, t.eot, eom} {
		if id != None {
			t.eog[id] = true
		}
	}
	var named []int32 // normal tokens with the text of a control token
	for i, text := range endTexts {
		id, ok := t.ids[text]
		if !ok {
			continue
		}
		if t.kinds[id] == kindNormal {
			named = append(named, id)
			continue
		}
		t.eog[id] = true
		if t.eot == None && i < turnTexts {
			t.eot = id
		}
	}
	for id, kind := range t.kinds {
		if t.texts[id] == "" {
			continue
		}
		switch kind {
		case kindUser:
			t.users.add(t.texts[id], int32(id))
			fallthrough
		case kindControl, kindUnknown:
			t.specials.add(t.texts[id], int32(id))
		}
	}
	for _, id := range named {
		t.specials.add(t.texts[id], id)
	}
	return nil
}

// matcher finds tokens in a text that are taken whole before it is split.
type matcher struct {
	starts [256]bool
	edges  map[uint64]uint32 // trie: node<<8 | byte -> node; 0 is the root
	tokens map[uint32]int32  // node -> the token that ends there
}

// match is an occurrence of a token.
type match struct {
	at, len int
	id      int32
}

func (m *matcher) add(text string, id int32) {
	if m.edges == nil {
		m.edges, m.tokens = map[uint64]uint32{}, map[uint32]int32{}
	}
	m.starts[text[0]] = true
	node := uint32(0)
	for i := range len(text) {
		key := uint64(node)<<8 | uint64(text[i])
		next, ok := m.edges[key]
		if !ok {
			next = uint32(len(m.edges) + 1)
			m.edges[key] = next
		}
		node = next
	}
	m.tokens[node] = id
}

// cut calls text for the stretches between tokens and token for the tokens, in
// order. Where tokens overlap the longest wins, wherever it begins.
func (m *matcher) cut(s string, text func(string), token func(int32)) {
	done := 0 // what has been handed out
	flush := func(cluster []match) {
		for _, x := range resolve(cluster) {
			if x.at > done {
				text(s[done:x.at])
			}
			token(x.id)
			done = x.at + x.len
		}
	}
	if m.edges != nil {
		var cluster []match // matches of which each overlaps one before it
		reach := 0
		for i := range len(s) {
			if !m.starts[s[i]] {
				continue
			}
			node, ok := uint32(0), true
			for j := i; j < len(s); j++ {
				if node, ok = m.edges[uint64(node)<<8|uint64(s[j])]; !ok {
					break
				}
				if id, ok := m.tokens[node]; ok {
					if i >= reach {
						flush(cluster)
						cluster = cluster[:0]
					}
					cluster = append(cluster, match{i, j + 1 - i, id})
					reach = max(reach, j+1)
				}
			}
		}
		flush(cluster)
	}
	if done < len(s) {
		text(s[done:])
	}
}

// resolve keeps of overlapping matches those that llama.cpp finds, which looks for
// the longest tokens first, and returns them in order.
func resolve(cluster []match) []match {
	if len(cluster) < 2 {
		return cluster
	}
	slices.SortFunc(cluster, func(a, b match) int {
		return cmp.Or(b.len-a.len, int(a.id-b.id), a.at-b.at)
	})
	first, last := cluster[0].at, cluster[0].at+cluster[0].len
	for _, x := range cluster {
		first, last = min(first, x.at), max(last, x.at+x.len)
	}
	taken := make([]bool, last-first)
	kept := cluster[:0]
	for _, x := range cluster {
		// No kept match is shorter than x, so one that overlaps it covers an end of it.
		if taken[x.at-first] || taken[x.at+x.len-1-first] {
			continue
		}
		for i := range x.len {
			taken[x.at-first+i] = true
		}
		kept = append(kept, x)
	}
	slices.SortFunc(kept, func(a, b match) int { return a.at - b.at })
	return kept
}
