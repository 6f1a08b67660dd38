package text

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"
)

func TestCountLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for size := range 200 {
		b := make([]byte, size)
		for i := range b {
			b[i] = []byte{'\n', '\v', 0, 0x8a, 'x', 0x0b, 0xff}[rng.IntN(7)]
		}
		if got, want := CountLines(b), bytes.Count(b, []byte{'\n'}); got != want {
			t.Fatalf("%q: got %d, want %d", b, got, want)
		}
		for n, pos := 1, 0; ; n++ {
			i := bytes.IndexByte(b[pos:], '\n')
			if i < 0 {
				break
			}
			pos += i + 1
			if got := AfterLine(b, n); got != pos {
				t.Fatalf("%q: line %d ends at %d, got %d", b, n, pos, got)
			}
		}
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		name, head string
		enc        Encoding
		mark       int
		binary     bool
	}{
		{"plain", "abc", None, 0, false},
		{"empty", "", None, 0, false},
		{"UTF-8 mark", "\xef\xbb\xbfabc", UTF8BOM, 3, false},
		{"UTF-16LE", "\xff\xfea\x00", UTF16LE, 2, false},
		{"UTF-16BE", "\xfe\xff\x00a", UTF16BE, 2, false},
		{"UTF-16 mark alone", "\xff\xfe", UTF16LE, 2, false},
		{"UTF-32", "\xff\xfe\x00\x00a\x00\x00\x00", None, 0, true},
		{"NUL", "a\x00b", None, 0, true},
		{"NUL after the sample", strings.Repeat("a", SniffLen) + "\x00", None, 0, false},
		{"legacy", "\x93\xfa", None, 0, false},
	} {
		enc, mark := Detect([]byte(c.head))
		if bin := IsBinary([]byte(c.head)); enc != c.enc || mark != c.mark || bin != c.binary {
			t.Errorf("%s: %v, %d, binary %v", c.name, enc, mark, bin)
		}
	}
}

func TestKind(t *testing.T) {
	for head, want := range map[string]string{
		"\x89PNG\r\n\x1a\n": "PNG image", "\x00\x00\x00": "only NUL bytes", "RIFF0000WEBP": "WebP image",
		"\x7fELF\x02": "ELF program", "text": "", "": "",
	} {
		if got := Kind([]byte(head)); got != want {
			t.Errorf("%q: %q", head, got)
		}
	}
}

// FuzzUTF16 checks that what decodes encodes to the same bytes, and that the reader agrees with the
// decoder whatever the size of its reads.
func FuzzUTF16(f *testing.F) {
	f.Add([]byte("t\x00e\x00"), true)
	f.Add([]byte("\xd8\x3d\xde\x00"), false)
	f.Add([]byte("\x3d\xd8\x00\xde\x3d"), true)
	f.Add(bytes.Repeat([]byte{0x3d, 0xd8, 0x00, 0xde}, 2049), true)
	f.Add(bytes.Repeat([]byte{0x3d, 0xd8}, 2050), true)
	f.Fuzz(func(t *testing.T, b []byte, little bool) {
		enc := UTF16BE
		if little {
			enc = UTF16LE
		}
		got, err := io.ReadAll(NewReader(iotest.OneByteReader(bytes.NewReader(b)), enc))
		whole, err2 := io.ReadAll(NewReader(bytes.NewReader(b), enc))
		if err != nil || err2 != nil || !bytes.Equal(got, whole) {
			t.Fatalf("reads differ: %q, %q, %v, %v", got, whole, err, err2)
		}
		var units []uint16
		for i := 0; i+1 < len(b); i += 2 {
			units = append(units, orderOf(enc).Uint16(b[i:]))
		}
		want := string(utf16.Decode(units))
		if len(b)%2 != 0 {
			want += string(utf8.RuneError)
		}
		if string(got) != want {
			t.Fatalf("reader: %q, want %q", got, want)
		}
		s, err := DecodeUTF16(b, enc)
		if err != nil {
			return
		}
		if string(s) != want || !bytes.Equal(EncodeUTF16(s, enc), b) {
			t.Fatalf("%x: decoded %q, encoded %x", b, s, EncodeUTF16(s, enc))
		}
	})
}

func TestAppendVisibleAndClip(t *testing.T) {
	for _, c := range []struct {
		in, want string
		escaped  bool
	}{
		{"plain é\t", "plain é\t", false},
		{"\x93\xfa = 1", `\x93\xfa = 1`, true},
		{"a\x00b", `a\x00b`, true},
		{"esc \x1b[2J", "esc \x1b[2J", false}, // the model gets the real bytes
		{"\ufffd", "\ufffd", false},
	} {
		got, esc := AppendVisible(nil, []byte(c.in))
		if string(got) != c.want || esc != c.escaped {
			t.Errorf("%q: %q, %v", c.in, got, esc)
		}
	}
	for n := range 6 {
		if got := Clip([]byte("aé😀"), n); !utf8.Valid(got) || len(got) > n {
			t.Errorf("%d: %q", n, got)
		}
	}
}
