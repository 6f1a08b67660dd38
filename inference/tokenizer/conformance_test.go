package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"atoll/inference/gguf"
)

// absent skips a test whose material is not here, and fails it where it must be.
func absent(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not here, and CI must have it", what)
	}
	t.Skipf("%s is not here", what)
}

// conformanceDir is the folder of the shared tokenizer cases.
func conformanceDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "conformance", "tokenizer")
	if _, err := os.Stat(dir); err != nil {
		absent(t, "shared/conformance/tokenizer")
	}
	return dir
}

var vocabularies sync.Map // name -> *Tokenizer

// vocabulary opens one of the vocabularies of the conformance cases.
func vocabulary(t testing.TB, name string) *Tokenizer {
	t.Helper()
	if v, ok := vocabularies.Load(name); ok {
		return v.(*Tokenizer)
	}
	path := filepath.Join(conformanceDir(t), name, "vocab.gguf")
	if name == "smollm2" {
		path = filepath.Join(os.Getenv("ATOLL_MODELS"), "SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	f, err := gguf.Open(path)
	if err != nil {
		absent(t, filepath.Base(path)+" (set ATOLL_MODELS)")
	}
	defer f.Close()
	v, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	vocabularies.Store(name, v)
	return v
}

var names = []string{"qwen2", "smollm2", "llama-bpe", "gpt-2"}

// eachLine decodes the JSON lines of a file; numbers in messages count from 1.
func eachLine[T any](t *testing.T, path string, do func(line int, c T)) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		var c T
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s:%d: %v", path, n, err)
		}
		do(n, c)
	}
}

// firstDiff is the index of the first difference, and some elements from there on.
func firstDiff(got, want []int32) (int, []int32, []int32) {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	return i, got[i:min(i+6, len(got))], want[i:min(i+6, len(want))]
}

func TestConformanceEncode(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			v := vocabulary(t, name)
			total, failed := 0, 0
			eachLine(t, filepath.Join(conformanceDir(t), name, "cases.jsonl"), func(line int, c struct {
				Text         string
				IDs          []int32
				AltIDs       []int32 `json:"alt_ids"`
				AddSpecial   bool    `json:"add_special"`
				ParseSpecial bool    `json:"parse_special"`
			}) {
				total++
				got := v.Encode(c.Text, c.AddSpecial, c.ParseSpecial)
				if slices.Equal(got, c.IDs) || c.AltIDs != nil && slices.Equal(got, c.AltIDs) {
					return
				}
				failed++
				i, g, w := firstDiff(got, c.IDs)
				t.Errorf("line %d: %.60q (add %v, parse %v): from token %d: got %v, want %v", line, c.Text, c.AddSpecial, c.ParseSpecial, i, g, w)
			})
			t.Logf("%d of %d cases failed", failed, total)
			if total < 170 {
				t.Errorf("only %d cases", total)
			}
		})
	}
}

func TestConformanceDecode(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			v := vocabulary(t, name)
			total := 0
			eachLine(t, filepath.Join(conformanceDir(t), name, "decode.jsonl"), func(line int, c struct {
				IDs        []int32
				PiecesHex  []string `json:"pieces_hex"`
				Text       string
				Stream     []string
				PendingHex *string `json:"pending_hex"`
			}) {
				total++
				d := v.NewDecoder()
				d.Special = true
				var out []string
				text := ""
				for i, id := range c.IDs {
					if got := hex.EncodeToString(v.Piece(id)); got != c.PiecesHex[i] {
						t.Errorf("line %d: piece %d: got %s, want %s", line, i, got, c.PiecesHex[i])
					}
					s := d.Push(id)
					out = append(out, s)
					text += s
				}
				if c.Stream != nil && !slices.Equal(out, c.Stream) {
					t.Errorf("line %d: stream %q, want %q", line, out, c.Stream)
				}
				if text != c.Text {
					t.Errorf("line %d: text %q, want %q", line, text, c.Text)
				}
				pending := ""
				if c.PendingHex != nil {
					pending = *c.PendingHex
				}
				if got := hex.EncodeToString(d.Pending()); got != pending {
					t.Errorf("line %d: pending %s, want %s", line, got, pending)
				}
				if all := v.Decode(c.IDs, true); all != text+d.Flush() {
					t.Errorf("line %d: Decode gives %q", line, all)
				}
			})
			if total < 60 {
				t.Errorf("only %d cases", total)
			}
		})
	}
}
