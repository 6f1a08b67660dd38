package model

import (
	"errors"
	"math"
	"slices"
	"strings"

	"atoll/inference/gguf"
)

// keys reads the keys of one architecture. It keeps the first fault, after which
// every getter returns its default, and remembers which keys were read so that
// [keys.rest] can find the others.
type keys struct {
	file *gguf.File
	arch string
	seen map[string]bool
	err  error
}

func newKeys(f *gguf.File, arch string) *keys {
	return &keys{file: f, arch: arch, seen: map[string]bool{}}
}

// fail keeps the error about a key of the architecture if it is the first one.
func (k *keys) fail(name, format string, args ...any) {
	if k.err == nil {
		k.err = k.file.KeyError(k.arch+"."+name, format, args...)
	}
}

// get looks a key up with one of the file's typed getters.
func get[T any](k *keys, name string, getter func(string) (T, error)) (v T, ok bool) {
	k.seen[name] = true
	if k.err != nil {
		return v, false
	}
	v, err := getter(k.arch + "." + name)
	if err != nil && !errors.Is(err, gguf.ErrMissing) {
		k.err = err
	}
	return v, err == nil
}

// count reads a required whole number from lo to hi.
func (k *keys) count(name string, lo, hi int) int {
	v, ok := get(k, name, k.file.Uint)
	if !ok {
		k.fail(name, "missing; the file was not written for this architecture or is incomplete, convert the model again")
		return lo
	}
	return k.inRange(name, v, lo, hi)
}

// countOr reads an optional whole number from lo to hi.
func (k *keys) countOr(name string, def, lo, hi int) int {
	v, ok := get(k, name, k.file.Uint)
	if !ok {
		return def
	}
	return k.inRange(name, v, lo, hi)
}

func (k *keys) inRange(name string, v uint64, lo, hi int) int {
	if v < uint64(lo) || v > uint64(hi) {
		k.fail(name, "%d is outside %d to %d", v, lo, hi)
		return lo
	}
	return int(v)
}

// float reads a number above lo and at most hi.
func (k *keys) float(name string, def float64, optional bool, lo, hi float64) float64 {
	v, ok := get(k, name, k.file.Float)
	if !ok {
		if !optional {
			k.fail(name, "missing; the file was not written for this architecture or is incomplete, convert the model again")
		}
		return def
	}
	if !(v > lo && v <= hi) || math.IsInf(v, 0) { // the first also refuses NaN
		k.fail(name, "%v is not above %v and at most %v", v, lo, hi)
		return def
	}
	return v
}

func (k *keys) text(name, def string) string {
	if v, ok := get(k, name, k.file.String); ok {
		return v
	}
	return def
}

func (k *keys) bool(name string) bool {
	v, _ := get(k, name, k.file.Bool)
	return v
}

// name reads general.name, which is for people only.
func (k *keys) name() string {
	v, _ := k.file.String("general.name")
	return v
}

// rest refuses keys of the architecture that were neither read nor are known to
// change nothing.
func (k *keys) rest(known []string) {
	for _, kv := range k.file.KVs() {
		name, ok := strings.CutPrefix(kv.Key, k.arch+".")
		if ok && !k.seen[name] && !slices.Contains(known, name) {
			k.fail(name, "not understood; the model may use a feature that this version lacks")
			return
		}
	}
}
