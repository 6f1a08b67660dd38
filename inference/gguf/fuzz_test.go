package gguf

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
)

// Whatever the bytes are: an Error, or a file whose every part can be read, in
// memory that the size of the input justifies.
func FuzzParse(f *testing.F) {
	f.Add(sample(f))
	f.Add(header(1, 1).kv(alignmentKey, Uint32).u32(64).tensor("t", 8, 0, 32).zeros(140).b)
	f.Add(header(2, 0).tensor("t", 23, 0, 256).tensor("u", 0, 32, 1).zeros(100).b)
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := FromBytes("fuzz", data)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20+uint64(len(data))*32 {
			t.Errorf("%d bytes allocate %d", len(data), got)
		}
		if err != nil {
			var ge *Error
			if !errors.As(err, &ge) || bytes.ContainsAny([]byte(err.Error()), "\n\x1b") {
				t.Fatalf("%q", err)
			}
			return
		}
		for _, kv := range m.KVs() {
			_ = kv.Text(50)
			_, _ = m.Uint(kv.Key)
			_, _ = m.Float(kv.Key)
			_, _ = m.Bool(kv.Key)
			_, _ = m.String(kv.Key)
			_, _ = m.Ints(kv.Key)
			if list, err := m.Strings(kv.Key); err == nil {
				seq, n, err := m.EachString(kv.Key)
				if err != nil || n != len(list) {
					t.Fatal(n, err)
				}
				for i, s := range seq {
					if list[i] != string(s) {
						t.Fatalf("%s[%d]", kv.Key, i)
					}
				}
			}
		}
		for _, x := range m.Tensors() {
			if b, err := x.Data(); err == nil && (uint64(len(b)) != x.Size || x.Size == 0) {
				t.Fatalf("%s: %d bytes of %d", x.Name, len(b), x.Size)
			}
			if x.Rows()*x.Dims[0] != x.Elements() {
				t.Fatal(x.Dims)
			}
		}
	})
}
