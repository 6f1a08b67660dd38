// Package gguf reads and writes GGUF model files.
//
// [Open] maps the file and checks every count, length and offset against the bytes
// that are there before it is used, so that a damaged or hostile file costs an
// error and never memory in proportion to what it claims. Metadata and tensors stay
// in the mapping until they are asked for. A [File] may be read from several
// goroutines; [File.Close] ends all views of it.
//
// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2
// and 3, little-endian.
package gguf

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"math/bits"
	"os"
)

// Limits of the header. They are far above any real file and keep the cost of a
// hostile one bounded.
const (
	maxKVs      = 1 << 16
	maxTensors  = 1 << 20
	maxName     = 1<<16 - 1 // bytes in a key or tensor name
	maxDims     = 4
	maxAlign    = 1 << 16
	headerBytes = 24 // magic, version, number of tensors, number of keys

	// The least that one entry takes in the file.
	minKVBytes     = 8 + 4 + 1
	minTensorBytes = 8 + 4 + 8 + 4 + 8
)

const (
	magic        = "GGUF"
	alignmentKey = "general.alignment"
	defaultAlign = 32
)

// File is an open model file.
type File struct {
	path    string
	version uint32
	data    []byte // the whole file
	unmap   func() error
	mapped  bool // data is a mapping of whole pages, see Release

	kvs     []KV
	kvIndex map[string]int

	tensors     []Tensor
	tensorIndex map[string]int
	dataStart   uint64 // of the tensor data, from the start of the file
	align       uint64
}

// Open maps and checks a model file. The file must not be shortened while it is
// open: the operating system answers reads of lost pages with a fatal signal.
func Open(path string) (*File, error) {
	// Looked at before it is opened: opening a FIFO would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, openErr(path, err)
	}
	if reason := notRegular(info); reason != "" {
		return nil, &Error{Path: path, Reason: reason}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, openErr(path, err)
	}
	defer file.Close() // a mapping stays without it
	if info, err = file.Stat(); err != nil {
		return nil, openErr(path, err)
	}
	if reason := notRegular(info); reason != "" {
		return nil, &Error{Path: path, Reason: reason}
	}
	if info.Size() == 0 {
		return nil, &Error{Path: path, Reason: foreign(nil)}
	}
	if info.Size() > math.MaxInt {
		return nil, &Error{Path: path, Reason: "too large for the address space of this machine"}
	}
	data, unmap, err := mapFile(file, int(info.Size()))
	if err != nil {
		return nil, &Error{Path: path, Reason: "map into memory: " + err.Error(), Err: err}
	}
	f, err := parse(path, data)
	if err != nil {
		unmap()
		return nil, err
	}
	f.unmap, f.mapped = unmap, true
	return f, nil
}

// FromBytes reads a model file that is in memory already; name stands for the path
// in messages. The file uses data, which must not be changed.
func FromBytes(name string, data []byte) (*File, error) { return parse(name, data) }

// Close unmaps the file. What [Tensor.Data] and [File.EachString] returned must not
// be used after it; the getters then find nothing.
func (f *File) Close() error {
	unmap := f.unmap
	// Metadata and tensors point into the mapping.
	f.unmap, f.data, f.kvs, f.kvIndex = nil, nil, nil, nil
	f.tensors, f.tensorIndex = nil, nil
	if unmap == nil {
		return nil
	}
	if err := unmap(); err != nil {
		return &Error{Path: f.path, Reason: "unmap: " + err.Error(), Err: err}
	}
	return nil
}

// Path returns the name that the file was opened with.
func (f *File) Path() string { return f.path }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Version returns the version of the format that the file is in.
func (f *File) Version() int { return int(f.version) }

func openErr(path string, err error) error {
	reason := err.Error()
	var pe *fs.PathError
	if errors.As(err, &pe) {
		reason = pe.Err.Error() // the path is told already
	}
	return &Error{Path: path, Reason: reason, Err: err}
}

func notRegular(info fs.FileInfo) string {
	switch m := info.Mode(); {
	case m.IsDir():
		return "is a directory: name the .gguf file in it"
	case !m.IsRegular():
		return "is not a regular file"
	}
	return ""
}

// parse checks data and makes the index of it.
func parse(path string, data []byte) (*File, error) {
	f := &File{path: path, data: data}
	if len(data) < 4 || string(data[:4]) != magic {
		return nil, f.fileErr("%s", foreign(data))
	}
	if len(data) < headerBytes {
		return nil, f.fileErr("file too short for its header: %d bytes (an interrupted download?)", len(data))
	}
	f.version = binary.LittleEndian.Uint32(data[4:])
	switch {
	case f.version == 2 || f.version == 3:
	case f.version == 0 || f.version&0xffff == 0:
		return nil, f.fileErr("big-endian GGUF files are not supported: convert it to little-endian")
	case f.version == 1:
		return nil, f.fileErr("GGUF version 1 is not supported: convert the model again to version 3")
	default:
		return nil, f.fileErr("GGUF version %d is not supported (2 and 3 are)", f.version)
	}
	r := &reader{data: data, off: headerBytes}
	if err := f.parseKVs(r, binary.LittleEndian.Uint64(data[16:])); err != nil {
		return nil, err
	}
	if err := f.parseAlignment(); err != nil {
		return nil, err
	}
	if err := f.parseTensors(r, binary.LittleEndian.Uint64(data[8:])); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) tooMany(what string, n uint64, r *reader) error {
	return f.fileErr("file too short for its header: it claims %d %s, and %d bytes follow", n, what, r.left())
}

func (f *File) cut(r *reader) error {
	return f.fileErr("file too short for its header: it ends at byte %d within the metadata (an interrupted download?)", len(f.data))
}

func (f *File) parseKVs(r *reader, n uint64) error {
	if n > uint64(r.left()/minKVBytes) {
		return f.tooMany("keys", n, r)
	}
	if n > maxKVs {
		return f.fileErr("%d metadata keys, at most %d are supported", n, maxKVs)
	}
	f.kvIndex = make(map[string]int)
	for range n {
		name, st := r.str(maxName)
		if st == tooLong {
			return f.fileErr("file too short for its header: key %d claims a name of %d bytes (at most %d)", len(f.kvs), r.claim, maxName)
		}
		t, ok := r.u32()
		if st != fine || !ok {
			return f.cut(r)
		}
		kv := KV{Key: string(name), Type: Type(t), Count: 1}
		if !kv.Type.known() {
			return f.KeyError(kv.Key, "value type %d is unknown", t)
		}
		if err := f.parseValue(r, &kv); err != nil {
			return err
		}
		if _, dup := f.kvIndex[kv.Key]; dup {
			return f.KeyError(kv.Key, "stands twice in the file")
		}
		f.kvIndex[kv.Key] = len(f.kvs)
		f.kvs = append(f.kvs, kv)
	}
	return nil
}

// parseValue sets kv.raw to the bytes of a value and steps over it.
func (f *File) parseValue(r *reader, kv *KV) error {
	start := r.off
	switch kv.Type {
	case String:
		if _, st := r.str(math.MaxInt); st != fine {
			return f.shortString(kv.Key, r, st)
		}
	case Array:
		et, ok1 := r.u32()
		n, ok2 := r.u64()
		if !ok1 || !ok2 {
			return f.cut(r)
		}
		kv.Elem = Type(et)
		if kv.Elem == Array {
			return f.KeyError(kv.Key, "arrays of arrays are not supported")
		}
		if !kv.Elem.known() {
			return f.KeyError(kv.Key, "array of unknown value type %d", et)
		}
		least := max(typeBytes[kv.Elem], 1)
		if kv.Elem == String {
			least = 8
		}
		if n > uint64(r.left()/least) {
			return f.KeyError(kv.Key, "file too short for its header: it claims an array of %d values, and %d bytes follow", n, r.left())
		}
		kv.Count = int(n)
		start = r.off
		if kv.Elem != String {
			r.off += kv.Count * least
			break
		}
		for range kv.Count {
			if _, st := r.str(math.MaxInt); st != fine {
				return f.shortString(kv.Key, r, st)
			}
		}
	default:
		if !r.skip(typeBytes[kv.Type]) {
			return f.cut(r)
		}
		if kv.Type == Bool && r.data[start] > 1 {
			return f.KeyError(kv.Key, "a bool holds %d", r.data[start])
		}
	}
	kv.raw = r.data[start:r.off:r.off]
	return nil
}

func (f *File) shortString(key string, r *reader, st status) error {
	if st == short {
		return f.cut(r)
	}
	return f.KeyError(key, "file too short for its header: it claims a string of %d bytes, and %d bytes follow", r.claim, r.left())
}

func (f *File) parseAlignment() error {
	f.align = defaultAlign
	kv := f.lookup(alignmentKey)
	if kv == nil {
		return nil
	}
	if kv.Type != Uint32 {
		return f.wrongType(kv, "u32")
	}
	v, _ := kv.uint()
	if bits.OnesCount64(v) != 1 || v > maxAlign {
		return f.KeyError(kv.Key, "alignment must be a power of two of at most %d, is %d", maxAlign, v)
	}
	f.align = v
	return nil
}

// reader walks over bytes; its methods report whether there were enough.
type reader struct {
	data  []byte
	off   int
	claim uint64 // length claimed by a string that was tooLong
}

type status int

const (
	fine status = iota
	short
	tooLong // the claimed length is over the limit or the bytes left
)

func (r *reader) left() int { return len(r.data) - r.off }

func (r *reader) skip(n int) bool {
	if n > r.left() {
		return false
	}
	r.off += n
	return true
}

func (r *reader) u32() (uint32, bool) {
	if !r.skip(4) {
		return 0, false
	}
	return binary.LittleEndian.Uint32(r.data[r.off-4:]), true
}

func (r *reader) u64() (uint64, bool) {
	if !r.skip(8) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(r.data[r.off-8:]), true
}

func (r *reader) str(limit int) ([]byte, status) {
	n, ok := r.u64()
	if !ok {
		return nil, short
	}
	if n > uint64(min(limit, r.left())) {
		r.claim = n
		return nil, tooLong
	}
	r.off += int(n)
	return r.data[r.off-int(n) : r.off], fine
}
