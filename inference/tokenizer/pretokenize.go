package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// splitter returns the length in bytes of the first word of a text that is not
// empty. Words are what BPE works on: merges never cross their borders.
type splitter func(text string) int

// rule is how a named pre-tokenizer behaves.
type rule struct {
	split     splitter
	wholeWord bool // words that are tokens are not split further
	addBOS    bool // unless the file says otherwise
}

// The regular expressions that the splitters stand for. They are matched one after
// the other from the start; \s is Unicode white space.
//
//	gpt-2   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//	smollm  the text is first cut around every \p{N}, then each part as gpt-2
//	qwen2   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//	llama-bpe  as qwen2, with \p{N}{1,3}
func splitGPT2(text string) int   { return gpt2Word(text, false) }
func splitSmolLM(text string) int { return gpt2Word(text, true) }
func splitQwen2(text string) int  { return llamaWord(text, 1) }
func splitLlama3(text string) int { return llamaWord(text, 3) }

// pretokenizers maps tokenizer.ggml.pre to rules, with the aliases of llama.cpp.
var pretokenizers = func() map[string]rule {
	m := map[string]rule{}
	add := func(r rule, names ...string) {
		for _, name := range names {
			m[name] = r
		}
	}
	add(rule{split: splitGPT2}, "gpt-2", "phi-2", "gigachat",
		"a.x-4.0", "mellum", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4")
	add(rule{split: splitSmolLM}, "smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2")
	add(rule{split: splitQwen2}, "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open")
	add(rule{split: splitLlama3, wholeWord: true, addBOS: true}, "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral",
		"midm-2.0", "lfm2")
	add(rule{split: splitLlama3}, "dbrx", "smaug-bpe", "chatglm-bpe", "glm4")
	return m
}()

// Pretokenizers returns the main names that are supported, without aliases.
func Pretokenizers() []string { return []string{"qwen2", "smollm", "llama-bpe", "gpt-2"} }

// class is what the pre-tokenizers distinguish.
type class uint8

const (
	other  class = iota // also bytes that are no UTF-8
	letter              // \p{L}
	number              // \p{N}
	space               // \s
	end                 // there is no character
)

// cjkExtensionI are letters since Unicode 15.1; the tables of Go may be older.
var cjkExtensionI = [2]rune{0x2EBF0, 0x2EE5D}

var asciiClass = func() (table [utf8.RuneSelf]class) {
	for r := range rune(utf8.RuneSelf) {
		table[r] = runeClass(r)
	}
	return table
}()

func runeClass(r rune) class {
	switch {
	case unicode.IsLetter(r) || r >= cjkExtensionI[0] && r <= cjkExtensionI[1]:
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// classAt returns class and width of the character at s[i:].
func classAt(s string, i int) (class, int) {
	if i >= len(s) {
		return end, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return asciiClass[b], 1
	}
	r, width := utf8.DecodeRuneInString(s[i:])
	return runeClass(r), width
}

// run returns the end of the characters of class c that begin at s[i:].
func run(s string, i int, c class) int {
	for i < len(s) {
		if b := s[i]; b < utf8.RuneSelf {
			if asciiClass[b] != c {
				return i
			}
			i++
			continue
		}
		got, width := classAt(s, i)
		if got != c {
			return i
		}
		i += width
	}
	return i
}

// contraction returns the length of 's 't 'm 'd 're 've 'll at the start of s, 0 if
// there is none.
func contraction(s string, ignoreCase bool) int {
	at := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		b := s[i]
		if ignoreCase && b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	switch at(1) {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if at(2) == 'e' {
			return 3
		}
	case 'l':
		if at(2) == 'l' {
			return 3
		}
	}
	return 0
}

// blanks ends a word at the start of which is white space: \s+(?!\S)|\s+. The run of
// white space leaves its last character to a word that follows; textEnd tells
// whether none does, given the class of what follows.
func blanks(s string, stop int, textEnd bool) int {
	if textEnd {
		return stop
	}
	_, width := utf8.DecodeLastRuneInString(s[:stop])
	if width == stop {
		return stop // a single one
	}
	return stop - width
}

func gpt2Word(s string, digitsApart bool) int {
	c, width := classAt(s, 0)
	if c == number && digitsApart {
		return width
	}
	if s[0] == '\'' {
		if n := contraction(s, false); n > 0 {
			return n
		}
	}
	start := 0
	if s[0] == ' ' {
		start = 1
		c, width = classAt(s, 1)
		if c == number && digitsApart {
			return 1 // the text is cut here
		}
	}
	if c != space && c != end {
		return run(s, start+width, c)
	}
	stop := run(s, 0, space)
	next, _ := classAt(s, stop)
	return blanks(s, stop, next == end || next == number && digitsApart)
}

func llamaWord(s string, digits int) int {
	b := s[0]
	if b == '\'' {
		if n := contraction(s, true); n > 0 {
			return n
		}
	}
	c, width := classAt(s, 0)
	next, nextWidth := end, 0
	switch c {
	case letter:
		return run(s, width, letter)
	case number:
		n := width
		for range digits - 1 {
			c, width := classAt(s, n)
			if c != number {
				break
			}
			n += width
		}
		return n
	}
	if b != '\r' && b != '\n' {
		if next, nextWidth = classAt(s, width); next == letter {
			return run(s, width+nextWidth, letter)
		}
	}
	if b == ' ' && next == other || c == other {
		i := run(s, width, other)
		for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
			i++
		}
		return i
	}
	// White space, up to its last line end if there is one.
	stop, lineEnd := 0, 0
	for stop < len(s) {
		c, width := classAt(s, stop)
		if c != space {
			break
		}
		if stop += width; s[stop-1] == '\r' || s[stop-1] == '\n' {
			lineEnd = stop
		}
	}
	if lineEnd > 0 {
		return lineEnd
	}
	return blanks(s, stop, stop == len(s))
}
