package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sourceText is Go source of this repository, and what it repeats to a megabyte.
func sourceText(t testing.TB) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	var b strings.Builder
	for b.Len() < 1<<20 {
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(data)
		}
	}
	return b.String()
}

func BenchmarkSplit(b *testing.B) {
	text := sourceText(b)
	for _, name := range Pretokenizers() {
		b.Run(name, func(b *testing.B) {
			split := pretokenizers[name].split
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for rest := text; rest != ""; {
					rest = rest[split(rest):]
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	text := sourceText(b)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			v := vocabulary(b, name)
			var ids []int32
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				ids = v.EncodeTo(ids[:0], text, false, false)
			}
			b.ReportMetric(float64(len(text))/float64(len(ids)), "bytes/token")
		})
	}
}

func BenchmarkRuns(b *testing.B) {
	for _, unit := range []string{"Z", " ", ".", "7", "好"} {
		b.Run(unit, func(b *testing.B) {
			v := vocabulary(b, "qwen2")
			text := strings.Repeat(unit, 131072/len(unit))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				v.Encode(text, false, false)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, name := range []string{"qwen2", "llama-bpe"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				vocabularies.Delete(name)
				vocabulary(b, name)
			}
		})
	}
}
