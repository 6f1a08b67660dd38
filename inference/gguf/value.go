package gguf

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
)

// Type is the stored type of a metadata value; the numbers are those of the file
// format.
type Type uint32

// The value types of the format.
const (
	Uint8   Type = 0
	Int8    Type = 1
	Uint16  Type = 2
	Int16   Type = 3
	Uint32  Type = 4
	Int32   Type = 5
	Float32 Type = 6
	Bool    Type = 7
	String  Type = 8
	Array   Type = 9
	Uint64  Type = 10
	Int64   Type = 11
	Float64 Type = 12
)

var typeNames = [...]string{"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"}

// typeBytes holds the size of a value; 0 for strings and arrays, which carry a length.
var typeBytes = [...]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

func (t Type) known() bool { return int(t) < len(typeNames) }

// String returns the short name used in messages, for example "u32".
func (t Type) String() string {
	if t.known() {
		return typeNames[t]
	}
	return "type " + strconv.FormatUint(uint64(t), 10)
}

func (t Type) unsigned() bool { return t == Uint8 || t == Uint16 || t == Uint32 || t == Uint64 }
func (t Type) signed() bool   { return t == Int8 || t == Int16 || t == Int32 || t == Int64 }
func (t Type) float() bool    { return t == Float32 || t == Float64 }

// KV is one metadata entry. Its value stays in the file until a getter asks for it.
type KV struct {
	Key   string
	Type  Type
	Elem  Type // type of the elements of an array
	Count int  // number of elements of an array, 1 otherwise

	raw []byte // the value without its type; of an array the elements only
}

// stored names the type as messages show it: "i32", "array of string".
func (kv *KV) stored() string {
	if kv.Type == Array {
		return "array of " + kv.Elem.String()
	}
	return kv.Type.String()
}

func (kv *KV) uint() (uint64, bool) {
	switch kv.Type {
	case Uint8:
		return uint64(kv.raw[0]), true
	case Uint16:
		return uint64(binary.LittleEndian.Uint16(kv.raw)), true
	case Uint32:
		return uint64(binary.LittleEndian.Uint32(kv.raw)), true
	case Uint64:
		return binary.LittleEndian.Uint64(kv.raw), true
	}
	return 0, false
}

// int64At reads element i of signed or unsigned integers; ok is false where an
// unsigned value does not fit.
func int64At(t Type, raw []byte, i int) (v int64, ok bool) {
	raw = raw[i*typeBytes[t]:]
	switch t {
	case Uint8:
		return int64(raw[0]), true
	case Int8:
		return int64(int8(raw[0])), true
	case Uint16:
		return int64(binary.LittleEndian.Uint16(raw)), true
	case Int16:
		return int64(int16(binary.LittleEndian.Uint16(raw))), true
	case Uint32:
		return int64(binary.LittleEndian.Uint32(raw)), true
	case Int32:
		return int64(int32(binary.LittleEndian.Uint32(raw))), true
	case Uint64:
		u := binary.LittleEndian.Uint64(raw)
		return int64(u), u <= math.MaxInt64
	case Int64:
		return int64(binary.LittleEndian.Uint64(raw)), true
	}
	return 0, false
}

func float64At(t Type, raw []byte, i int) float64 {
	if t == Float32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
}

// stringAt cuts the string at the front of raw, which the parser has checked.
func stringAt(raw []byte) (s, rest []byte) {
	n := binary.LittleEndian.Uint64(raw)
	return raw[8 : 8+n], raw[8+n:]
}

// Text renders the value for people: strings quoted, arrays as their first few
// elements and their count. The result has at most about limit bytes.
func (kv *KV) Text(limit int) string {
	if kv.Type != Array {
		return elemText(kv.Type, kv.raw, 0, limit)
	}
	var b strings.Builder
	b.WriteByte('[')
	raw := kv.raw
	for i := range kv.Count {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() >= limit || i >= 32 {
			fmt.Fprintf(&b, "... %d in all", kv.Count)
			break
		}
		if kv.Elem == String {
			var s []byte
			s, raw = stringAt(raw)
			b.WriteString(quoteCut(s, limit))
		} else {
			b.WriteString(elemText(kv.Elem, raw, i, limit))
		}
	}
	b.WriteByte(']')
	return b.String()
}

func elemText(t Type, raw []byte, i, limit int) string {
	switch {
	case t == String:
		s, _ := stringAt(raw)
		return quoteCut(s, limit)
	case t == Bool:
		return strconv.FormatBool(raw[i] != 0)
	case t == Float32:
		return strconv.FormatFloat(float64At(t, raw, i), 'g', -1, 32)
	case t == Float64:
		return strconv.FormatFloat(float64At(t, raw, i), 'g', -1, 64)
	case t == Uint64:
		return strconv.FormatUint(binary.LittleEndian.Uint64(raw[8*i:]), 10)
	}
	v, _ := int64At(t, raw, i)
	return strconv.FormatInt(v, 10)
}

func quoteCut(s []byte, limit int) string {
	if len(s) > limit {
		return strconv.Quote(string(s[:max(limit, 0)])) + "..."
	}
	return strconv.Quote(string(s))
}

// KVs returns the metadata in the order of the file. It must not be changed.
func (f *File) KVs() []KV { return f.kvs }

// Has reports whether the file has the key.
func (f *File) Has(key string) bool { return f.lookup(key) != nil }

func (f *File) lookup(key string) *KV {
	i, ok := f.kvIndex[key]
	if !ok {
		return nil
	}
	return &f.kvs[i]
}

func (f *File) need(key string) (*KV, error) {
	kv := f.lookup(key)
	if kv == nil {
		return nil, &Error{Path: f.path, Key: "key " + clean(key, maxShown), Reason: "missing from the file", Err: ErrMissing}
	}
	return kv, nil
}

func (f *File) wrongType(kv *KV, want string) error {
	return f.KeyError(kv.Key, "stored as %s, must be %s", kv.stored(), want)
}

// Uint returns an unsigned integer of any width. A missing key is an error that
// wraps [ErrMissing]; a value stored as another type is an error.
func (f *File) Uint(key string) (uint64, error) {
	kv, err := f.need(key)
	if err != nil {
		return 0, err
	}
	v, ok := kv.uint()
	if !ok {
		return 0, f.wrongType(kv, "an unsigned integer")
	}
	return v, nil
}

// UintOr is Uint with a value for a missing key.
func (f *File) UintOr(key string, missing uint64) (uint64, error) {
	if !f.Has(key) {
		return missing, nil
	}
	return f.Uint(key)
}

// Float returns a float of either width. Errors as for [File.Uint].
func (f *File) Float(key string) (float64, error) {
	kv, err := f.need(key)
	if err != nil {
		return 0, err
	}
	if !kv.Type.float() {
		return 0, f.wrongType(kv, "f32 or f64")
	}
	return float64At(kv.Type, kv.raw, 0), nil
}

// Bool returns a boolean. Errors as for [File.Uint].
func (f *File) Bool(key string) (bool, error) {
	kv, err := f.need(key)
	if err != nil {
		return false, err
	}
	if kv.Type != Bool {
		return false, f.wrongType(kv, "bool")
	}
	return kv.raw[0] != 0, nil
}

// BoolOr is Bool with a value for a missing key.
func (f *File) BoolOr(key string, missing bool) (bool, error) {
	if !f.Has(key) {
		return missing, nil
	}
	return f.Bool(key)
}

// String returns a string, byte for byte. Errors as for [File.Uint].
func (f *File) String(key string) (string, error) {
	kv, err := f.need(key)
	if err != nil {
		return "", err
	}
	if kv.Type != String {
		return "", f.wrongType(kv, "string")
	}
	s, _ := stringAt(kv.raw)
	return string(s), nil
}

// StringOr is String with a value for a missing key.
func (f *File) StringOr(key, missing string) (string, error) {
	if !f.Has(key) {
		return missing, nil
	}
	return f.String(key)
}

// array finds an array whose elements pass ok.
func (f *File) array(key, want string, ok func(Type) bool) (*KV, error) {
	kv, err := f.need(key)
	if err != nil {
		return nil, err
	}
	if kv.Type != Array || !ok(kv.Elem) {
		return nil, f.wrongType(kv, want)
	}
	return kv, nil
}

// Strings returns an array of strings. They are decoded at each call and share one
// copy of the array's bytes, so they outlive the file. Errors as for [File.Uint].
func (f *File) Strings(key string) ([]string, error) {
	kv, err := f.array(key, "an array of strings", func(t Type) bool { return t == String })
	if err != nil {
		return nil, err
	}
	all := string(kv.raw)
	list := make([]string, kv.Count)
	at := 0
	for i := range list {
		n := int(binary.LittleEndian.Uint64(kv.raw[at:]))
		list[i] = all[at+8 : at+8+n]
		at += 8 + n
	}
	return list, nil
}

// EachString yields index and bytes of each string of an array without copying;
// the bytes are valid until [File.Close]. Errors as for [File.Uint].
func (f *File) EachString(key string) (seq iter.Seq2[int, []byte], count int, err error) {
	kv, err := f.array(key, "an array of strings", func(t Type) bool { return t == String })
	if err != nil {
		return nil, 0, err
	}
	return func(yield func(int, []byte) bool) {
		rest := kv.raw
		var s []byte
		for i := range kv.Count {
			s, rest = stringAt(rest)
			if !yield(i, s) {
				return
			}
		}
	}, kv.Count, nil
}

// Ints returns an array of integers of any width and sign. A value over the range
// of int64 is an error. Errors else as for [File.Uint].
func (f *File) Ints(key string) ([]int64, error) {
	kv, err := f.array(key, "an array of integers", func(t Type) bool { return t.signed() || t.unsigned() })
	if err != nil {
		return nil, err
	}
	list := make([]int64, kv.Count)
	for i := range list {
		v, ok := int64At(kv.Elem, kv.raw, i)
		if !ok {
			return nil, f.KeyError(key, "element %d is out of range", i)
		}
		list[i] = v
	}
	return list, nil
}
