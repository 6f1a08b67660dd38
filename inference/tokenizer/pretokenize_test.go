package tokenizer

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// words returns the words of a text.
func words(split splitter, text string) []string {
	var list []string
	for text != "" {
		n := split(text)
		if n <= 0 || n > len(text) {
			panic("BUG: a word of impossible length")
		}
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ pre, text, want string }{
		{"qwen2", "Hello  world", "Hello| | world"},
		{"qwen2", "a = b\n\n  c", "a| =| b|\n\n| | c"},
		{"qwen2", "x12y", "x|1|2|y"},
		{"qwen2", "I'M don't", "I|'M| don|'t"},
		{"qwen2", "(foo)\n\n}", "(foo|)\n\n|}"},
		{"qwen2", "\tif x {\r\n", "\tif| x| {\r\n"},
		{"qwen2", " 1 2", " |1| |2"},
		{"qwen2", "end   ", "end|   "},
		{"llama-bpe", "1234567", "123|456|7"},
		{"llama-bpe", "٣٤٥٦", "٣٤٥|٦"},
		{"gpt-2", "Hello  world", "Hello| | world"},
		{"gpt-2", "I'M don't", "I|'|M| don|'t"},
		{"gpt-2", "x 123\n\n y", "x| 123|\n\n| y"},
		{"gpt-2", "\tif", "\t|if"},
		{"smollm", "x  123", "x|  |1|2|3"},
		{"smollm", " 1 a", " |1| a"},
		{"smollm", "½x²", "½|x|²"},
	} {
		if got := strings.Join(words(pretokenizers[c.pre].split, c.text), "|"); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.pre, c.text, got, c.want)
		}
	}
}

// The regular expressions of the families, less \s+(?!\S), which Go's package cannot
// express; S stands for its white space.
var families = map[string]struct {
	text   string
	apart  bool // every \p{N} is cut off first
	blanks string
}{
	"gpt-2":     {`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^S\p{L}\p{N}]+`, false, ""},
	"smollm":    {`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^S\p{L}\p{N}]+`, true, ""},
	"qwen2":     {`'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^S\p{L}\p{N}]+[\r\n]*`, false, `[S]*[\r\n]+`},
	"llama-bpe": {`'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^S\p{L}\p{N}]+[\r\n]*`, false, `[S]*[\r\n]+`},
}

const whiteSpace = `\t-\r \x{85}\p{Z}`

type oracle struct {
	word, space, line, digit *regexp.Regexp
	apart                    bool
}

func newOracle(name string) oracle {
	f := families[name]
	compile := func(s string) *regexp.Regexp {
		return regexp.MustCompile(`^(?:` + strings.ReplaceAll(s, "S", whiteSpace) + `)`)
	}
	// [sS] of the contractions must survive the replacement.
	text := strings.ReplaceAll(f.text, `'[sS]`, `'[s\x{53}]`)
	o := oracle{word: compile(text), space: compile(`[S]+`), digit: regexp.MustCompile(`\p{N}`), apart: f.apart}
	if f.blanks != "" {
		o.line = compile(f.blanks)
	}
	return o
}

// split cuts a text as the regular expressions say.
func (o oracle) split(text string) (list []string) {
	if o.apart {
		for text != "" {
			at := o.digit.FindStringIndex(text)
			if at == nil {
				return append(list, o.part(text)...)
			}
			list = append(list, o.part(text[:at[0]])...)
			list = append(list, text[at[0]:at[1]])
			text = text[at[1]:]
		}
		return list
	}
	return o.part(text)
}

func (o oracle) part(text string) (list []string) {
	for text != "" {
		n := len(o.word.FindString(text))
		if n == 0 && o.line != nil {
			n = len(o.line.FindString(text))
		}
		if n == 0 {
			n = len(o.space.FindString(text))
			if n < len(text) { // \S follows: \s+(?!\S) gives one back, if there are two
				if _, last := utf8.DecodeLastRuneInString(text[:n]); last < n {
					n -= last
				}
			}
		}
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}

// alphabet has the characters at which the rules part.
var alphabet = []string{"a", "Z", "é", "ſ", "好", "s", "t", "re", "'", "'s", "'LL", "’", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\u200b",
	"1", "23", "٣", "½", "Ⅳ", ".", "!", "()", "=", "\u0301", "😀", "\u00ad", "\ufffd", "\x00", "\U0001d7ce", "_", "ª", "ⓐ"}

func TestSplitMatchesRegexp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for name := range families {
		o := newOracle(name)
		check := func(text string) {
			t.Helper()
			if got, want := words(pretokenizers[name].split, text), o.split(text); !slices.Equal(got, want) {
				t.Fatalf("%s %q:\ngot  %q\nwant %q", name, text, got, want)
			}
		}
		for range 20_000 {
			var b strings.Builder
			for range 1 + rnd.IntN(12) {
				b.WriteString(alphabet[rnd.IntN(len(alphabet))])
			}
			check(b.String())
		}
		for _, r := range []rune{0, '\v', '\f', 0x1c, 0x85, 0xa0, 0x1680, 0x180e, 0x2000, 0x200a, 0x200b, 0x2029, 0x202f, 0x205f, 0xfeff} {
			check("a" + string(r) + string(r) + "b")
		}
	}
}

// Letters of Unicode 15.1 are letters whatever the tables of Go say.
func TestLettersOfNewerUnicode(t *testing.T) {
	if got := words(splitQwen2, "a\U0002ebf0b\U0002ee5dc"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// Bytes that are no UTF-8 are words like symbols, and stay as they are.
func TestInvalidUTF8(t *testing.T) {
	for _, pre := range Pretokenizers() {
		text := "ab\xff\xc3 \xe4\xbd x\xed\xa0\x80\xf8."
		got := words(pretokenizers[pre].split, text)
		if want := []string{"ab", "\xff\xc3", " \xe4\xbd", " x", "\xed\xa0\x80\xf8."}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pre, got, want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("Hello  world 123\n\n it's")
	f.Add("\u2028 \r\n\t½'LL\xff")
	oracles := map[string]oracle{}
	for name := range families {
		oracles[name] = newOracle(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, o := range oracles {
			got := words(pretokenizers[name].split, text)
			if strings.Join(got, "") != text {
				t.Fatalf("%s %q: %q", name, text, got)
			}
			if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r >= cjkExtensionI[0] && r <= cjkExtensionI[1] }) {
				if want := o.split(text); !slices.Equal(got, want) {
					t.Fatalf("%s %q:\ngot  %q\nwant %q", name, text, got, want)
				}
			}
		}
	})
}
