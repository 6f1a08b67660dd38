// Package text tells text from binary and decodes what is not UTF-8, without ever losing a byte: what
// is shown may be escaped, what is written back is exact.
package text

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// SniffLen is how many leading bytes decide whether a file is binary. It is git's figure.
const SniffLen = 8000

// An Encoding is what a byte order mark at the start of a file says.
type Encoding uint8

// The encodings that are told apart. None stands for bytes without a mark, mostly UTF-8.
const (
	None Encoding = iota
	UTF8BOM
	UTF16LE
	UTF16BE
)

func (e Encoding) String() string {
	return [...]string{"", "UTF-8 with BOM", "UTF-16LE", "UTF-16BE"}[e]
}

// Detect looks at the first bytes of a file and returns its encoding and the length of the mark.
func Detect(head []byte) (Encoding, int) {
	switch {
	case bytes.HasPrefix(head, []byte{0xef, 0xbb, 0xbf}):
		return UTF8BOM, 3
	case bytes.HasPrefix(head, []byte{0xff, 0xfe, 0, 0}), bytes.HasPrefix(head, []byte{0, 0, 0xfe, 0xff}):
		return None, 0 // UTF-32; its NULs make it binary
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return UTF16LE, 2
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return UTF16BE, 2
	}
	return None, 0
}

// IsBinary tells whether a file that starts with head is binary: it has a NUL among its first SniffLen
// bytes and no byte order mark that explains it.
func IsBinary(head []byte) bool {
	if enc, _ := Detect(head); enc == UTF16LE || enc == UTF16BE {
		return false
	}
	return bytes.IndexByte(head[:min(len(head), SniffLen)], 0) >= 0
}

// Kind names the format of a binary file by its first bytes, or returns "".
func Kind(head []byte) string {
	for _, m := range []struct{ magic, kind string }{
		{"\x89PNG\r\n", "PNG image"}, {"\xff\xd8\xff", "JPEG image"}, {"GIF8", "GIF image"}, {"BM", "BMP image"},
		{"\x00\x00\x01\x00", "ICO image"}, {"%PDF-", "PDF"}, {"\x7fELF", "ELF program"}, {"PK\x03\x04", "zip archive"},
		{"\x1f\x8b", "gzip data"}, {"BZh", "bzip2 data"}, {"\xfd7zXZ\x00", "xz data"}, {"\x28\xb5\x2f\xfd", "zstd data"},
		{"\x00asm", "WebAssembly module"}, {"SQLite format 3\x00", "SQLite database"}, {"GGUF", "GGUF model"},
		{"\xca\xfe\xba\xbe", "Java class"}, {"\xcf\xfa\xed\xfe", "Mach-O program"}, {"MZ", "Windows program"},
		{"OggS", "Ogg media"}, {"ID3", "MP3 audio"}, {"!<arch>\n", "ar archive"},
	} {
		if len(head) >= len(m.magic) && string(head[:len(m.magic)]) == m.magic {
			return m.kind
		}
	}
	switch {
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "WebP image"
	case len(head) > 0 && len(bytes.Trim(head, "\x00")) == 0:
		return "only NUL bytes"
	}
	return ""
}

// ErrUTF16 says that UTF-16 text has an odd length or half a surrogate pair, so that it cannot be
// decoded and encoded again without loss.
var ErrUTF16 = errors.New("invalid UTF-16")

// DecodeUTF16 turns UTF-16 without its mark into UTF-8. It fails with ErrUTF16 unless EncodeUTF16
// would give back the same bytes.
func DecodeUTF16(b []byte, enc Encoding) ([]byte, error) {
	if len(b)%2 != 0 {
		return nil, ErrUTF16
	}
	order := orderOf(enc)
	out := make([]byte, 0, len(b)/2+len(b)/8)
	for i := 0; i < len(b); i += 2 {
		r := rune(order.Uint16(b[i:]))
		if utf16.IsSurrogate(r) {
			if i += 2; i >= len(b) {
				return nil, ErrUTF16
			}
			if r = utf16.DecodeRune(r, rune(order.Uint16(b[i:]))); r == utf8.RuneError {
				return nil, ErrUTF16
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out, nil
}

// EncodeUTF16 turns valid UTF-8 into UTF-16 without a mark.
func EncodeUTF16(s []byte, enc Encoding) []byte {
	order := orderOf(enc)
	out := make([]byte, 0, 2*len(s))
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		s = s[n:]
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			out = order.AppendUint16(order.AppendUint16(out, uint16(hi)), uint16(lo))
		} else {
			out = order.AppendUint16(out, uint16(r))
		}
	}
	return out
}

// A byteOrder is UTF16LE or UTF16BE. (Package encoding/binary would bring reflection into the module.)
type byteOrder Encoding

func orderOf(enc Encoding) byteOrder {
	if enc != UTF16LE && enc != UTF16BE {
		panic("BUG: text: not a UTF-16 encoding")
	}
	return byteOrder(enc)
}

func (o byteOrder) Uint16(b []byte) uint16 {
	if o == byteOrder(UTF16BE) {
		return uint16(b[0])<<8 | uint16(b[1])
	}
	return uint16(b[1])<<8 | uint16(b[0])
}

func (o byteOrder) AppendUint16(b []byte, v uint16) []byte {
	if o == byteOrder(UTF16BE) {
		return append(b, byte(v>>8), byte(v))
	}
	return append(b, byte(v), byte(v>>8))
}

// NewReader returns a reader of r's content as UTF-8: UTF-16 is decoded for display, with U+FFFD for
// what is invalid; anything else passes through. The mark of enc has been read already.
func NewReader(r io.Reader, enc Encoding) io.Reader {
	if enc != UTF16LE && enc != UTF16BE {
		return r
	}
	return &utf16Reader{r: r, order: orderOf(enc)}
}

type utf16Reader struct {
	r     io.Reader
	order byteOrder
	raw   [4096]byte
	n     int    // bytes of raw that are not decoded yet
	out   []byte // decoded, not handed out yet
	buf   [3 * 4096]byte
	err   error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil && u.n == 0 {
			return 0, u.err
		}
		if u.err == nil {
			n, err := u.r.Read(u.raw[u.n:])
			u.n, u.err = u.n+n, err
		}
		u.decode()
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// decode decodes all whole characters of raw; at the end of the input all that is left.
func (u *utf16Reader) decode() {
	out, i := u.buf[:0], 0
	for i+2 <= u.n {
		r := rune(u.order.Uint16(u.raw[i:]))
		if utf16.IsSurrogate(r) {
			if i+4 > u.n && u.err == nil {
				break
			}
			pair := rune(utf8.RuneError)
			if i+4 <= u.n {
				pair = utf16.DecodeRune(r, rune(u.order.Uint16(u.raw[i+2:])))
			}
			if r = pair; r != utf8.RuneError {
				i += 2
			}
		}
		out = utf8.AppendRune(out, r)
		i += 2
	}
	if u.err != nil && i < u.n {
		out, i = utf8.AppendRune(out, utf8.RuneError), u.n
	}
	u.n = copy(u.raw[:], u.raw[i:u.n])
	u.out = out
}

// AppendVisible appends a line of a file as results show it: bytes that are not UTF-8 and NUL become
// \xNN, all else is left as it is, so that a model can copy it into an edit. It reports whether
// anything was escaped.
func AppendVisible(dst, line []byte) ([]byte, bool) {
	if utf8.Valid(line) && bytes.IndexByte(line, 0) < 0 {
		return append(dst, line...), false
	}
	const hex = "0123456789abcdef"
	for len(line) > 0 {
		r, n := utf8.DecodeRune(line)
		if r == utf8.RuneError && n == 1 || r == 0 {
			dst = append(dst, '\\', 'x', hex[line[0]>>4], hex[line[0]&15])
		} else {
			dst = append(dst, line[:n]...)
		}
		line = line[n:]
	}
	return dst, true
}

// Clip returns at most n bytes of b that do not end within a UTF-8 character.
func Clip(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for i := 0; i < utf8.UTFMax-1 && n > 0 && !utf8.RuneStart(b[n]); i++ {
		n--
	}
	return b[:n]
}
