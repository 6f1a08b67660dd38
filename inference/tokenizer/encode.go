package tokenizer

// Encode returns the tokens of a text. addSpecial puts the begin and end tokens
// around it that the vocabulary asks for. With parseSpecial the text of a control
// token becomes that token; without it no control token comes from text.
// User-defined tokens match in both. Bytes that are no UTF-8 are kept as they are,
// except that a byte for which the vocabulary has no token is left out.
func (t *Tokenizer) Encode(text string, addSpecial, parseSpecial bool) []int32 {
	return t.EncodeTo(make([]int32, 0, len(text)/3+2), text, addSpecial, parseSpecial)
}

// EncodeTo is [Tokenizer.Encode] appending to dst.
func (t *Tokenizer) EncodeTo(dst []int32, text string, addSpecial, parseSpecial bool) []int32 {
	if addSpecial && t.addBOS {
		dst = append(dst, t.bos)
	}
	m := &t.users
	if parseSpecial {
		m = &t.specials
	}
	var s scratch
	m.cut(text, func(part string) {
		for part != "" {
			n := t.split(part)
			dst = t.encodeWord(dst, part[:n], &s)
			part = part[n:]
		}
	}, func(id int32) {
		dst = append(dst, id)
	})
	if addSpecial && t.addEOS {
		dst = append(dst, t.eos)
	}
	return dst
}
