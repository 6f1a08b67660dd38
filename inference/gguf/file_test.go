package gguf

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"atoll/kernels/quant"
)

// sample is a small file with a value of each kind and two tensors.
func sample(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	err := Write(&b, []Pair{
		{"general.architecture", "llama"},
		{"a.u8", uint8(200)}, {"a.i8", int8(-3)}, {"a.u16", uint16(65000)}, {"a.i16", int16(-300)},
		{"a.u32", uint32(1 << 31)}, {"a.i32", int32(-7)}, {"a.u64", uint64(math.MaxUint64)}, {"a.i64", int64(-1 << 40)},
		{"a.f32", float32(1e-5)}, {"a.f64", 2.5}, {"a.yes", true}, {"a.no", false}, {"a.text", "x\x00\xffy"},
		{"l.text", []string{"", "ab", "\n"}}, {"l.none", []string{}}, {"l.i32", []int32{1, -2}},
		{"l.u64", []uint64{1, math.MaxUint64}}, {"l.f32", []float32{0.5, -1}}, {"l.f64", []float64{3}},
		{"l.bool", []bool{true, false}}, {"l.u8", []uint8{1, 255}},
	}, []Blob{
		{"w", quant.Q4_0, []uint64{64, 3}, bytes.Repeat([]byte{1, 2, 3}, 36)},
		{"b", quant.F32, []uint64{3}, []byte("abcdefghijkl")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeFile(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRoundTrip(t *testing.T) {
	f, err := Open(writeFile(t, sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	check := func(name string, got, want any, err error) {
		t.Helper()
		if err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: got %#v, %v; want %#v", name, got, err, want)
		}
	}
	for key, want := range map[string]uint64{"a.u8": 200, "a.u16": 65000, "a.u32": 1 << 31, "a.u64": math.MaxUint64} {
		got, err := f.Uint(key)
		check(key, got, want, err)
	}
	f32, err := f.Float("a.f32")
	check("a.f32", f32, float64(float32(1e-5)), err)
	f64, err := f.Float("a.f64")
	check("a.f64", f64, 2.5, err)
	yes, err := f.Bool("a.yes")
	check("a.yes", yes, true, err)
	no, err := f.Bool("a.no")
	check("a.no", no, false, err)
	text, err := f.String("a.text")
	check("a.text", text, "x\x00\xffy", err)
	list, err := f.Strings("l.text")
	check("l.text", list, []string{"", "ab", "\n"}, err)
	none, err := f.Strings("l.none")
	check("l.none", none, []string{}, err)
	i32, err := f.Ints("l.i32")
	check("l.i32", i32, []int64{1, -2}, err)
	u8, err := f.Ints("l.u8")
	check("l.u8", u8, []int64{1, 255}, err)
	n, err := f.UintOr("none", 7)
	check("default", n, uint64(7), err)

	var each []string
	seq, count, err := f.EachString("l.text")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range seq {
		each = append(each, fmt.Sprint(i, string(s)))
	}
	check("EachString", each, []string{"0", "1ab", "2\n"}, nil)
	check("count", count, 3, nil)

	var names []string
	for _, x := range f.Tensors() {
		names = append(names, x.Name+x.FormatName()+x.Shape())
		if x.Offset%32 != 0 {
			t.Errorf("%s at %d", x.Name, x.Offset)
		}
	}
	check("tensors", names, []string{"wQ4_0[64 3]", "bF32[3]"}, nil)
	w, _ := f.Tensor("w")
	check("rows", w.Rows(), uint64(3), nil)
	data, err := w.Data()
	check("data of w", string(data), strings.Repeat("\x01\x02\x03", 36), err)
	b, _ := f.Tensor("b")
	f.Release(b)
	data, err = b.Data()
	check("data after release", string(data), "abcdefghijkl", err)
	if _, ok := f.Tensor("x"); ok {
		t.Error("found a tensor that is not there")
	}
	var keys []string
	for _, kv := range f.KVs()[:3] {
		keys = append(keys, kv.Key+"="+kv.Text(20))
	}
	check("KVs", keys, []string{`general.architecture="llama"`, "a.u8=200", "a.i8=-3"}, nil)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f.Has("a.u8") {
		t.Error("a key after Close")
	}
}

func TestText(t *testing.T) {
	f, err := FromBytes("m", sample(t))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"a.text": `"x\x00\xffy"`, "a.f32": "1e-05", "a.u64": "18446744073709551615", "a.i64": "-1099511627776", "a.yes": "true",
		"l.text": `["", "ab", "\n"]`, "l.none": "[]", "l.u64": "[1, 18446744073709551615]", "l.bool": "[true, false]",
	} {
		if got := f.lookup(key).Text(60); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	if got := f.lookup("l.text").Text(3); got != `["", ... 3 in all]` {
		t.Errorf("cut: %s", got)
	}
	if got := f.lookup("general.architecture").Text(2); got != `"ll"...` {
		t.Errorf("cut: %s", got)
	}
}

func TestGettersRefuse(t *testing.T) {
	f, err := FromBytes("m.gguf", sample(t))
	if err != nil {
		t.Fatal(err)
	}
	errOf := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{errOf(f.Uint("none")), "model file m.gguf: key none: missing from the file"},
		{errOf(f.Uint("a.i32")), "key a.i32: stored as i32, must be an unsigned integer"},
		{errOf(f.UintOr("a.f32", 1)), "key a.f32: stored as f32"},
		{errOf(f.Float("a.u32")), "key a.u32: stored as u32, must be f32 or f64"},
		{errOf(f.Bool("a.u8")), "key a.u8: stored as u8, must be bool"},
		{errOf(f.BoolOr("a.u8", true)), "stored as u8"},
		{errOf(f.String("l.text")), "key l.text: stored as array of string, must be string"},
		{errOf(f.StringOr("a.u8", "")), "stored as u8"},
		{errOf(f.Strings("l.i32")), "key l.i32: stored as array of i32, must be an array of strings"},
		{errOf(f.Ints("l.f32")), "array of f32"},
		{errOf(f.Ints("a.u8")), "stored as u8, must be an array of integers"},
		{errOf(f.Ints("l.u64")), "key l.u64: element 1 is out of range"},
	} {
		var ge *Error
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || !errors.As(c.err, &ge) {
			t.Errorf("got %v, want %s", c.err, c.want)
		}
	}
	if _, err := f.Uint("none"); !errors.Is(err, ErrMissing) {
		t.Error("not ErrMissing")
	}
	if _, err := f.Uint("a.i32"); errors.Is(err, ErrMissing) {
		t.Error("ErrMissing for a wrong type")
	}
}

// raw builds broken files by hand.
type raw struct{ b []byte }

func header(tensors, keys uint64) *raw {
	r := &raw{[]byte("GGUF")}
	return r.u32(3).u64(tensors).u64(keys)
}
func (r *raw) u32(v uint32) *raw { r.b = binary.LittleEndian.AppendUint32(r.b, v); return r }
func (r *raw) u64(v uint64) *raw { r.b = binary.LittleEndian.AppendUint64(r.b, v); return r }
func (r *raw) str(s string) *raw { r.u64(uint64(len(s))); r.b = append(r.b, s...); return r }
func (r *raw) kv(k string, t Type) *raw {
	return r.str(k).u32(uint32(t))
}
func (r *raw) tensor(name string, format uint32, off uint64, dims ...uint64) *raw {
	r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(format).u64(off)
}
func (r *raw) zeros(n int) *raw { r.b = append(r.b, make([]byte, n)...); return r }

func unbase64(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestBadFiles(t *testing.T) {
	whole := sample(t)
	const big = 1 << 60
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"B001 zero dimension", unbase64("R0dVRgMAAAABAAAAAAAAAAEAAAAAAAAAFAAAAAAAAABnZW5lcmFsLmFyY2hpdGVjdHVyZQgAAAAFAAAAAAAAAGxsYW1hAQAAAAAAAAB0AgAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
			"tensor t: size 1 of its dimensions is 0"},
		{"B003 alignment 0", unbase64("R0dVRgMAAAABAAAAAAAAAAIAAAAAAAAAFAAAAAAAAABnZW5lcmFsLmFyY2hpdGVjdHVyZQgAAAAFAAAAAAAAAGxsYW1hEQAAAAAAAABnZW5lcmFsLmFsaWdubWVudAQAAAAAAAAAAQAAAAAAAAB0AQAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
			"key general.alignment: alignment must be a power of two of at most 65536, is 0"},
		{"B003 alignment i32", unbase64("R0dVRgMAAAABAAAAAAAAAAIAAAAAAAAAFAAAAAAAAABnZW5lcmFsLmFyY2hpdGVjdHVyZQgAAAAFAAAAAAAAAGxsYW1hEQAAAAAAAABnZW5lcmFsLmFsaWdubWVudAUAAAAgAAAAAQAAAAAAAAB0AQAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
			"key general.alignment: stored as i32, must be u32"},
		{"B003 alignment 24", header(0, 1).kv(alignmentKey, Uint32).u32(24).b, "power of two of at most 65536, is 24"},
		{"B003 alignment 2^31", header(0, 1).kv(alignmentKey, Uint32).u32(1 << 31).b, "power of two of at most 65536, is 2147483648"},
		{"B005 tensor count", unbase64("R0dVRgMAAAAAAAAAAAAAEAEAAAAAAAAAFAAAAAAAAABnZW5lcmFsLmFyY2hpdGVjdHVyZQgAAAAFAAAAAAAAAGxsYW1h"),
			"file too short for its header: it claims 1152921504606846976 tensors, and 0 bytes follow"},
		{"B005 key count", header(0, big).zeros(40).b, "file too short for its header: it claims 1152921504606846976 keys"},
		{"B005 string length", header(0, 1).kv("k", String).u64(big).zeros(40).b, "key k: file too short for its header: it claims a string of 1152921504606846976 bytes"},
		{"B005 array length", header(0, 1).kv("k", Array).u32(uint32(Uint8)).u64(big).zeros(40).b, "key k: file too short for its header: it claims an array of 1152921504606846976"},
		{"string array length", header(0, 1).kv("k", Array).u32(uint32(String)).u64(6).zeros(40).b, "key k: file too short for its header: it claims an array of 6"},
		{"string in an array", header(0, 1).kv("k", Array).u32(uint32(String)).u64(2).u64(0).u64(math.MaxUint64).b, "key k: file too short for its header: it claims a string of 18446744073709551615"},
		{"key name length", header(0, 1).u64(big).zeros(40).b, "file too short for its header: key 0 claims a name"},
		{"key name over the limit", header(0, 1).u64(1 << 16).zeros(1 << 17).b, "at most 65535"},
		{"tensor name length", header(1, 0).u64(big).zeros(40).b, "file too short for its header: tensor 0 claims a name"},
		{"value type", header(0, 1).kv("k", 13).zeros(40).b, "key k: value type 13 is unknown"},
		{"array of array", header(0, 1).kv("k", Array).u32(uint32(Array)).u64(1).zeros(40).b, "key k: arrays of arrays"},
		{"array of unknown", header(0, 1).kv("k", Array).u32(99).u64(1).zeros(40).b, "key k: array of unknown value type 99"},
		{"bool of 2", header(0, 1).kv("k", Bool).u32(2).b, "key k: a bool holds 2"},
		{"key twice", header(0, 2).kv("k", Bool).zeros(1).kv("k", Bool).zeros(1).b, "key k: stands twice"},
		{"cut value", header(0, 1).kv("kkkkk", Uint64).zeros(7).b, "file too short for its header: it ends at byte 48"},
		{"no dimensions", header(1, 0).tensor("t", 0, 0).zeros(40).b, "tensor t: has 0 dimensions"},
		{"five dimensions", header(1, 0).tensor("t", 0, 0, 1, 1, 1, 1, 1).zeros(40).b, "tensor t: has 5 dimensions"},
		{"2^32 dimensions", header(1, 0).str("t").u32(math.MaxUint32).zeros(40).b, "tensor t: has 4294967295 dimensions"},
		{"negative dimension", header(1, 0).tensor("t", 0, 0, math.MaxUint64).zeros(40).b, "tensor t: size 0 of its dimensions is -1"},
		{"dimensions overflow", header(1, 0).tensor("t", 0, 0, 1<<40, 1<<40).zeros(40).b, "tensor t: dimensions multiply to more than 2^63 values"},
		{"bytes overflow", header(1, 0).tensor("t", 0, 0, 1<<62).zeros(40).b, "tensor t: dimensions multiply to more than 2^63 bytes"},
		{"partial block", header(1, 0).tensor("t", 2, 0, 33).zeros(90).b, "tensor t: rows of 33 values are not whole blocks of 32 (format Q4_0)"},
		{"tensor twice", header(2, 0).tensor("t", 0, 0, 1).tensor("t", 0, 0, 1).zeros(90).b, "tensor t: stands twice"},
		{"offset not aligned", header(1, 0).tensor("t", 0, 4, 1).zeros(90).b, "tensor t: offset 4 is not a multiple of the alignment 32"},
		{"truncated", header(1, 0).tensor("t", 0, 0, 10).zeros(46).b, "tensor t: file is truncated: the tensor needs 40 bytes at offset 0 of the tensor data, 39 are present"},
		{"offset far out", header(1, 0).tensor("t", 0, math.MaxUint64&^31, 10).zeros(90).b, "tensor t: file is truncated: the tensor needs 40 bytes"},
		{"real file cut in data", whole[:len(whole)-33], "tensor b: file is truncated: the tensor needs 12 bytes at offset 128 of the tensor data, 0 are present"},
		{"real file cut in header", whole[:100], "file too short for its header"},
		{"long name in the message", header(1, 0).tensor(strings.Repeat("n", 500), 0, 0).zeros(40).b, "tensor " + strings.Repeat("n", 100) + "...: has"},
		{"control characters in the message", header(1, 0).tensor("a\nb\x1b[31m", 0, 0).zeros(40).b, `tensor "a\nb\x1b[31m": has`},
		{"version 1", []byte("GGUF\x01\x00\x00\x00" + strings.Repeat("\x00", 16)), "GGUF version 1 is not supported"},
		{"version 4", []byte("GGUF\x04\x00\x00\x00" + strings.Repeat("\x00", 16)), "GGUF version 4 is not supported"},
		{"big-endian", []byte("GGUF\x00\x00\x00\x03" + strings.Repeat("\x00", 16)), "big-endian"},
		{"header only", []byte("GGUF\x03\x00\x00\x00"), "too short for its header: 8 bytes"},
		{"empty", nil, "is empty"},
		{"zip", []byte("PK\x03\x04xxxxxxxxx"), "a zip archive"},
		{"safetensors", append(binary.LittleEndian.AppendUint64(nil, 20), `{"__metadata__":{}}  `...), "a safetensors file"},
		{"html", []byte("\n <!DOCTYPE html><html>"), "an HTML page"},
		{"lfs", []byte("version https://git-lfs.github.com/spec/v1\noid"), "git lfs pull"},
		{"json", []byte(`{"error":"denied"}`), "a JSON text"},
		{"zeros", make([]byte, 4096), "starts with zero bytes"},
		{"gzip", []byte("\x1f\x8b\x08\x00aaaa"), "gunzip it"},
		{"noise", []byte("hello"), "not a GGUF file: it starts with 68 65 6c 6c 6f"},
		{"lower case magic", []byte("gguf\x03\x00\x00\x00" + strings.Repeat("\x00", 16)), "not a GGUF file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, c.data)
			f, err := Open(path)
			if err == nil {
				f.Close()
				t.Fatal("opened")
			}
			var ge *Error
			if !errors.As(err, &ge) || ge.Path != path {
				t.Errorf("%#v is no Error with the path", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 600 {
				t.Errorf("message is not one plain line: %q", err)
			}
		})
	}
}

// Every prefix of a file is refused, or is the whole file less its padding.
func TestEveryPrefix(t *testing.T) {
	whole := sample(t)
	for n := range len(whole) - 32 {
		if _, err := FromBytes("m", whole[:n:n]); err == nil {
			t.Fatalf("%d of %d bytes accepted", n, len(whole))
		}
	}
}

// A claim must not cost memory: each file is small, and so is what reading it takes.
func TestClaimsCostNothing(t *testing.T) {
	const big = 1 << 60
	for name, data := range map[string][]byte{
		"tensors":  header(big, 0).zeros(1000).b,
		"most":     header(1<<20, 0).zeros(1000).b,
		"keys":     header(0, big).zeros(1000).b,
		"string":   header(0, 1).kv("k", String).u64(big).zeros(1000).b,
		"array":    header(0, 1).kv("k", Array).u32(uint32(Float64)).u64(big).zeros(1000).b,
		"strings":  header(0, 1).kv("k", Array).u32(uint32(String)).u64(125).zeros(1000).b,
		"bytes":    header(0, 1).kv("k", Array).u32(uint32(Uint8)).u64(1000).zeros(1000).b,
		"tensor":   header(1, 0).tensor("t", 0, 0, 1<<61).zeros(1000).b,
		"all good": sample(t),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = FromBytes(name, data)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
			t.Errorf("%s: reading %d bytes allocates %d", name, len(data), got)
		}
	}
}

func TestNotFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	_, err := Open(filepath.Join(dir, "none"))
	if !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), dir) != 1 {
		t.Errorf("missing: %v", err)
	}
}

func TestUnsupportedFormat(t *testing.T) {
	f, err := FromBytes("m", header(2, 0).tensor("t", 23, 0, 256).tensor("u", 0, 0, 1).zeros(100).b)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := f.Tensor("t")
	if x.FormatName() != "IQ4_XS" || x.Elements() != 256 {
		t.Errorf("%+v", x)
	}
	_, err = x.Data()
	var ge *Error
	if !errors.As(err, &ge) || !strings.Contains(err.Error(), "tensor t: format IQ4_XS is not supported") {
		t.Errorf("%v", err)
	}
	y, _ := f.Tensor("u")
	if _, err := y.Data(); err != nil {
		t.Error(err)
	}
}

func TestVersion2AndOverlap(t *testing.T) {
	r := header(2, 1).kv(alignmentKey, Uint32).u32(64).tensor("a", 0, 0, 16).tensor("b", 0, 0, 16).zeros(200)
	r.b[4] = 2
	f, err := FromBytes("m", r.b)
	if err != nil {
		t.Fatal(err)
	}
	if f.Version() != 2 || f.Size() != int64(len(r.b)) || f.Path() != "m" {
		t.Error("version, size or path")
	}
	for _, x := range f.Tensors() {
		if x.Offset%64 != 0 {
			t.Errorf("%s at %d", x.Name, x.Offset)
		}
		if d, err := x.Data(); err != nil || len(d) != 64 {
			t.Error(len(d), err)
		}
	}
}

// Release gives memory back and changes nothing that is read.
func TestReleaseBig(t *testing.T) {
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	var b bytes.Buffer
	if err := Write(&b, nil, []Blob{{"a", quant.F32, []uint64{8}, data[:32]}, {"t", quant.F32, []uint64{1 << 18}, data}}); err != nil {
		t.Fatal(err)
	}
	f, err := Open(writeFile(t, b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, x := range f.Tensors() {
		f.Release(x)
	}
	x, _ := f.Tensor("t")
	got, err := x.Data()
	if err != nil || !bytes.Equal(got, data) {
		t.Error("data changed", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		pairs []Pair
		blobs []Blob
		want  string
	}{
		{"value type", []Pair{{"k", 1}}, nil, "key k: values of type int"},
		{"alignment", []Pair{{alignmentKey, uint32(3)}}, nil, "power of two"},
		{"alignment type", []Pair{{alignmentKey, int32(32)}}, nil, "uint32"},
		{"data size", nil, []Blob{{"t", quant.F32, []uint64{2}, make([]byte, 7)}}, "tensor t: 7 bytes of data, needs 8"},
		{"no data", nil, []Blob{{"t", quant.F32, []uint64{0}, nil}}, "tensor t"},
		{"block", nil, []Blob{{"t", quant.Q8_0, []uint64{31}, nil}}, "whole blocks"},
		{"format", nil, []Blob{{"t", 99, []uint64{31}, nil}}, "type 99"},
		{"dims", nil, []Blob{{"t", quant.F32, nil, make([]byte, 4)}}, "0 dimensions"},
	} {
		if err := Write(&bytes.Buffer{}, c.pairs, c.blobs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := Write(failing{}, []Pair{{"k", "v"}}, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("writer's error: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, fs.ErrPermission }

// The three real models open, and what they hold is what models.md says.
func TestRealModels(t *testing.T) {
	dir := os.Getenv("ATOLL_MODELS")
	for _, c := range []struct {
		file, arch string
		tensors    map[quant.Format]int
		vocab      int
	}{
		{"SmolLM2-135M-Instruct.Q4_1.gguf", "llama", map[quant.Format]int{quant.Q4_1: 210, quant.Q8_0: 1, quant.F32: 61}, 49152},
		{"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2", map[quant.Format]int{quant.Q5_0: 133, quant.Q8_0: 13, quant.Q6_K: 12, quant.Q4_K: 12, quant.F32: 121}, 151936},
		{"qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "qwen2", map[quant.Format]int{quant.Q4_K: 169, quant.Q6_K: 29, quant.F32: 141}, 151936},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := filepath.Join(dir, c.file)
			if _, err := os.Stat(path); dir == "" || err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal("model file is not in ATOLL_MODELS, and CI must have it")
				}
				t.Skip("model file is not in ATOLL_MODELS")
			}
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if arch, err := f.String("general.architecture"); err != nil || arch != c.arch {
				t.Error(arch, err)
			}
			got := map[quant.Format]int{}
			for _, x := range f.Tensors() {
				got[x.Format]++
				if _, err := x.Data(); err != nil {
					t.Error(err)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.tensors) {
				t.Errorf("formats %v, want %v", got, c.tensors)
			}
			tokens, err := f.Strings("tokenizer.ggml.tokens")
			if err != nil || len(tokens) != c.vocab || slices.Contains(tokens, "") {
				t.Errorf("%d tokens, %v", len(tokens), err)
			}
			types, err := f.Ints("tokenizer.ggml.token_type")
			if err != nil || len(types) != c.vocab {
				t.Errorf("%d types, %v", len(types), err)
			}
		})
	}
}
