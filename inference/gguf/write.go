package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"

	"atoll/kernels/quant"
)

// Pair is a metadata entry to write. Value is one of uint8, int8, uint16, int16,
// uint32, int32, uint64, int64, float32, float64, bool, string, or a slice of
// uint8, uint32, int32, uint64, int64, float32, float64, bool or string.
type Pair struct {
	Key   string
	Value any
}

// Blob is a tensor to write: Data holds exactly the bytes that Format needs for
// Dims, where Dims[0] is the length of a row.
type Blob struct {
	Name   string
	Format quant.Format
	Dims   []uint64
	Data   []byte
}

// Write writes a file of version 3: pairs and tensors in the given order, the data
// aligned as a pair "general.alignment" (uint32) says, else to 32 bytes.
func Write(w io.Writer, pairs []Pair, tensors []Blob) error {
	o := &output{w: bufio.NewWriterSize(w, 1<<16)}
	o.bytes([]byte(magic))
	o.put(uint32(3))
	o.put(uint64(len(tensors)))
	o.put(uint64(len(pairs)))
	align := uint64(defaultAlign)
	for _, p := range pairs {
		if p.Key == alignmentKey {
			v, ok := p.Value.(uint32)
			if !ok || bits.OnesCount32(v) != 1 || v > maxAlign {
				return fmt.Errorf("write gguf: %s: must be a uint32 power of two", alignmentKey)
			}
			align = uint64(v)
		}
		o.str(p.Key)
		if err := o.value(p.Value); err != nil {
			return fmt.Errorf("write gguf: key %s: %w", p.Key, err)
		}
	}
	offset := uint64(0)
	for _, t := range tensors {
		if err := t.check(); err != nil {
			return fmt.Errorf("write gguf: tensor %s: %w", t.Name, err)
		}
		o.str(t.Name)
		o.put(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			o.put(d)
		}
		o.put(uint32(t.Format))
		o.put(offset)
		offset += (uint64(len(t.Data)) + align - 1) &^ (align - 1)
	}
	o.pad(align)
	for _, t := range tensors {
		o.bytes(t.Data)
		o.pad(align)
	}
	if o.err == nil {
		o.err = o.w.Flush()
	}
	if o.err != nil {
		return fmt.Errorf("write gguf: %w", o.err)
	}
	return nil
}

func (t *Blob) check() error {
	if !t.Format.Known() {
		return fmt.Errorf("format %s is not supported", t.Format)
	}
	if len(t.Dims) == 0 || len(t.Dims) > maxDims {
		return fmt.Errorf("%d dimensions", len(t.Dims))
	}
	blockLen := uint64(t.Format.BlockLen())
	if t.Dims[0]%blockLen != 0 {
		return fmt.Errorf("rows of %d values are not whole blocks of %d", t.Dims[0], blockLen)
	}
	want := t.Dims[0] / blockLen * uint64(t.Format.BlockBytes())
	for _, d := range t.Dims[1:] {
		want *= d
	}
	if want == 0 || want != uint64(len(t.Data)) {
		return fmt.Errorf("%d bytes of data, needs %d", len(t.Data), want)
	}
	return nil
}

// output writes little-endian values and keeps the first error.
type output struct {
	w   *bufio.Writer
	n   uint64
	err error
}

func (o *output) bytes(b []byte) {
	if o.err == nil {
		_, o.err = o.w.Write(b)
		o.n += uint64(len(b))
	}
}

// put writes a fixed-size value.
func (o *output) put(v any) {
	if o.err == nil {
		o.err = binary.Write(o.w, binary.LittleEndian, v)
		o.n += uint64(binary.Size(v))
	}
}

func (o *output) str(s string) {
	o.put(uint64(len(s)))
	o.bytes([]byte(s))
}

func (o *output) pad(align uint64) {
	if rest := o.n % align; rest != 0 {
		o.bytes(make([]byte, align-rest))
	}
}

func (o *output) value(v any) error {
	t, elem, count := typeOf(v)
	if t == math.MaxUint32 {
		return fmt.Errorf("values of type %T cannot be stored", v)
	}
	o.put(uint32(t))
	if t == Array {
		o.put(uint32(elem))
		o.put(uint64(count))
	}
	switch v := v.(type) {
	case string:
		o.str(v)
	case []string:
		for _, s := range v {
			o.str(s)
		}
	default:
		o.put(v)
	}
	return nil
}

// typeOf returns the stored type of a Go value, MaxUint32 if there is none.
func typeOf(v any) (t, elem Type, count int) {
	switch v := v.(type) {
	case uint8:
		return Uint8, 0, 1
	case int8:
		return Int8, 0, 1
	case uint16:
		return Uint16, 0, 1
	case int16:
		return Int16, 0, 1
	case uint32:
		return Uint32, 0, 1
	case int32:
		return Int32, 0, 1
	case uint64:
		return Uint64, 0, 1
	case int64:
		return Int64, 0, 1
	case float32:
		return Float32, 0, 1
	case float64:
		return Float64, 0, 1
	case bool:
		return Bool, 0, 1
	case string:
		return String, 0, 1
	case []uint8:
		return Array, Uint8, len(v)
	case []uint32:
		return Array, Uint32, len(v)
	case []int32:
		return Array, Int32, len(v)
	case []uint64:
		return Array, Uint64, len(v)
	case []int64:
		return Array, Int64, len(v)
	case []float32:
		return Array, Float32, len(v)
	case []float64:
		return Array, Float64, len(v)
	case []bool:
		return Array, Bool, len(v)
	case []string:
		return Array, String, len(v)
	}
	return math.MaxUint32, 0, 0
}
