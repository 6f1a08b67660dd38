package tokenizer

import (
	"unicode/utf8"
)

// makePieces computes the bytes of every token.
func (t *Tokenizer) makePieces() {
	t.starts = make([]uint32, len(t.texts)+1)
	total := 0
	for _, text := range t.texts {
		total += len(text)
	}
	t.pieces = make([]byte, 0, total)
	for id, text := range t.texts {
		switch t.kinds[id] {
		case kindNormal:
			t.pieces = appendBytes(t.pieces, text)
		case kindControl, kindUser, kindUnknown:
			t.pieces = append(t.pieces, text...)
		}
		t.starts[id+1] = uint32(len(t.pieces))
	}
}

// appendBytes appends the bytes that the characters of a token stand for. A
// character that stands for none is kept as it is.
func appendBytes(dst []byte, text string) []byte {
	for i, r := range text {
		if int(r) < len(runeBytes) && runeBytes[r] >= 0 {
			dst = append(dst, byte(runeBytes[r]))
			continue
		}
		_, width := utf8.DecodeRuneInString(text[i:])
		dst = append(dst, text[i:i+width]...)
	}
	return dst
}

// Piece returns the bytes of a token; of a control token its name. They must not be
// changed. An unused token, and an id out of range, has none.
func (t *Tokenizer) Piece(id int32) []byte {
	if !t.valid(id) {
		return nil
	}
	from, to := t.starts[id], t.starts[id+1]
	return t.pieces[from:to:to]
}

// Decode returns the bytes of the tokens as a string, which is UTF-8 if they are.
// Control tokens are left out unless special is set.
func (t *Tokenizer) Decode(ids []int32, special bool) string {
	var out []byte
	for _, id := range ids {
		if special || !t.IsControl(id) {
			out = append(out, t.Piece(id)...)
		}
	}
	return string(out)
}

// Decoder turns a stream of tokens into text without ever splitting a character.
// It may be copied to branch off.
type Decoder struct {
	Special bool // also give the names of control tokens

	t       *Tokenizer
	pending []byte
}

// NewDecoder returns a decoder at the start of a text, which leaves control tokens out.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t} }

// Push adds a token and returns the text that is complete with it. Bytes that begin
// a character are held back until it is whole; bytes that cannot become one come
// out as they are.
func (d *Decoder) Push(id int32) string {
	if !d.Special && d.t.IsControl(id) {
		return ""
	}
	piece := d.t.Piece(id)
	if len(d.pending) == 0 {
		keep := incomplete(piece)
		d.pending = append([]byte(nil), piece[len(piece)-keep:]...)
		return string(piece[:len(piece)-keep])
	}
	all := append(append([]byte(nil), d.pending...), piece...)
	keep := incomplete(all)
	d.pending = all[len(all)-keep:]
	return string(all[:len(all)-keep])
}

// Pending returns the bytes that are held back.
func (d *Decoder) Pending() []byte { return append([]byte(nil), d.pending...) }

// Flush returns what is held back, which is no whole character, and forgets it.
func (d *Decoder) Flush() string {
	s := string(d.pending)
	d.pending = nil
	return s
}

// incomplete returns the number of bytes at the end of b that begin a character
// and lack the rest of it: 0 to 3.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if tail := b[len(b)-n:]; c >= utf8.RuneSelf && !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}
