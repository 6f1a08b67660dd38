package gguf

import (
	"fmt"
	"math"
	"math/bits"

	"atoll/kernels/quant"
)

// Tensor is one array of weights in a file.
type Tensor struct {
	Name   string
	Format quant.Format // may be one that [quant.Format.Known] denies, see Data
	Dims   []uint64     // 1 to 4 sizes, all positive; Dims[0] is the length of a row
	Offset uint64       // bytes from the start of the file
	Size   uint64       // bytes; 0 if the format is unknown

	file *File
}

// Elements returns the number of values: the product of Dims.
func (t Tensor) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Rows returns the number of rows of Dims[0] values.
func (t Tensor) Rows() uint64 { return t.Elements() / t.Dims[0] }

// Shape renders the sizes, for example "[1536 8960]".
func (t Tensor) Shape() string { return fmt.Sprint(t.Dims) }

// FormatName is the usual name of the storage format, also of formats that cannot
// be read.
func (t Tensor) FormatName() string { return formatName(t.Format) }

// Data returns the bytes of the tensor, a view that is valid until [File.Close]. It
// is an error if the format is not one that atoll reads.
func (t Tensor) Data() ([]byte, error) {
	if !t.Format.Known() {
		return nil, t.file.TensorError(t.Name, "format %s is not supported: use a model file of F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K", formatName(t.Format))
	}
	if t.file.data == nil {
		panic("BUG: tensor data after gguf.File.Close")
	}
	return t.file.data[t.Offset : t.Offset+t.Size : t.Offset+t.Size], nil
}

// Tensors returns the tensors in the order of the file. It must not be changed.
func (f *File) Tensors() []Tensor { return f.tensors }

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.tensorIndex[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Release tells the operating system that the data of t is not needed for now, for
// instance because a backend has made its own copy. Data stays valid: it is read
// from disk again when used. Pages shared with a neighbour are kept.
func (f *File) Release(t Tensor) {
	if f.mapped && f.data != nil && t.Size > 0 {
		release(f.data, t.Offset, t.Offset+t.Size)
	}
}

func (f *File) parseTensors(r *reader, n uint64) error {
	if n > uint64(r.left()/minTensorBytes) {
		return f.tooMany("tensors", n, r)
	}
	if n > maxTensors {
		return f.fileErr("%d tensors, at most %d are supported", n, maxTensors)
	}
	f.tensorIndex = make(map[string]int)
	for range n {
		t, err := f.parseTensor(r)
		if err != nil {
			return err
		}
		if _, dup := f.tensorIndex[t.Name]; dup {
			return f.TensorError(t.Name, "stands twice in the file")
		}
		f.tensorIndex[t.Name] = len(f.tensors)
		f.tensors = append(f.tensors, t)
	}
	f.dataStart = (uint64(r.off) + f.align - 1) &^ (f.align - 1)
	for i := range f.tensors {
		if err := f.place(&f.tensors[i]); err != nil {
			return err
		}
	}
	return nil
}

// parseTensor reads one entry of the tensor table; Offset is still relative to the
// data section.
func (f *File) parseTensor(r *reader) (t Tensor, err error) {
	name, st := r.str(maxName)
	if st == tooLong {
		return t, f.fileErr("file too short for its header: tensor %d claims a name of %d bytes (at most %d)", len(f.tensors), r.claim, maxName)
	}
	nd, ok := r.u32()
	if st != fine || !ok {
		return t, f.cut(r)
	}
	t = Tensor{Name: string(name), file: f}
	if nd == 0 || nd > maxDims {
		return t, f.TensorError(t.Name, "has %d dimensions, must have 1 to %d", nd, maxDims)
	}
	t.Dims = make([]uint64, nd)
	count := uint64(1)
	for i := range t.Dims {
		d, ok := r.u64()
		if !ok {
			return t, f.cut(r)
		}
		if d == 0 {
			return t, f.TensorError(t.Name, "size %d of its dimensions is 0, must be positive", i)
		}
		if d > math.MaxInt64 {
			return t, f.TensorError(t.Name, "size %d of its dimensions is %d, must be positive", i, int64(d))
		}
		hi, lo := bits.Mul64(count, d)
		if hi != 0 || lo > math.MaxInt64 {
			return t, f.TensorError(t.Name, "dimensions multiply to more than 2^63 values")
		}
		t.Dims[i], count = d, lo
	}
	format, ok1 := r.u32()
	t.Offset, ok = r.u64()
	if !ok1 || !ok {
		return t, f.cut(r)
	}
	t.Format = quant.Format(format)
	if !t.Format.Known() {
		return t, nil
	}
	blockLen := uint64(t.Format.BlockLen())
	if t.Dims[0]%blockLen != 0 {
		return t, f.TensorError(t.Name, "rows of %d values are not whole blocks of %d (format %s)", t.Dims[0], blockLen, t.Format)
	}
	hi, size := bits.Mul64(count/blockLen, uint64(t.Format.BlockBytes()))
	if hi != 0 || size > math.MaxInt64 {
		return t, f.TensorError(t.Name, "dimensions multiply to more than 2^63 bytes")
	}
	t.Size = size
	return t, nil
}

// place checks where a tensor lies and makes its offset absolute. Tensors may
// share bytes.
func (f *File) place(t *Tensor) error {
	if t.Offset%f.align != 0 {
		return f.TensorError(t.Name, "offset %d is not a multiple of the alignment %d", t.Offset, f.align)
	}
	have := uint64(0)
	if size := uint64(len(f.data)); size > f.dataStart {
		have = size - f.dataStart
	}
	if t.Offset > have || t.Size > have-t.Offset {
		present := uint64(0)
		if t.Offset < have {
			present = have - t.Offset
		}
		return f.TensorError(t.Name, "file is truncated: the tensor needs %d bytes at offset %d of the tensor data, %d are present; fetch the file again", t.Size, t.Offset, present)
	}
	t.Offset += f.dataStart
	return nil
}

// formatNames names the formats of ggml that atoll does not read.
var formatNames = map[quant.Format]string{
	9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
	20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
	29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}

func formatName(f quant.Format) string {
	if name, ok := formatNames[f]; ok && !f.Known() {
		return name
	}
	return f.String()
}
