package chat

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Value is a value of a template: what Python would hold in its place. Make one
// with [String], [Literal], [Bool], [Int], [Float], [None], [NewList], [NewMap]
// or [FromJSON].
type Value interface {
	// pyType is the name Python gives the type, for messages.
	pyType() string
}

type (
	none      struct{}
	boolean   bool
	integer   int64
	float     float64
	bigint    struct{ *big.Int }    // outside the range of integer
	undefined struct{ what string } // what Jinja2 would say about using it
)

// List is a list, a tuple, or one of the views that behave like one.
type List struct {
	items []Value
	form  listForm
	group bool // a pair made by groupby: .grouper and .list
}

type listForm uint8

const (
	formList listForm = iota
	formTuple
	formRange
	formKeys
	formValues
	formItems
)

// namespace is the object that namespace() makes.
type namespace struct{ vars *Map }

// function is anything callable that is not a macro.
type function struct {
	name string
	call func(r *run, line int, a args) Value
}

func (none) pyType() string       { return "NoneType" }
func (boolean) pyType() string    { return "bool" }
func (integer) pyType() string    { return "int" }
func (float) pyType() string      { return "float" }
func (bigint) pyType() string     { return "int" }
func (undefined) pyType() string  { return "Undefined" }
func (text) pyType() string       { return "str" }
func (*Map) pyType() string       { return "dict" }
func (*namespace) pyType() string { return "Namespace" }
func (*function) pyType() string  { return "function" }
func (l *List) pyType() string {
	return [...]string{"list", "tuple", "range", "dict_keys", "dict_values", "dict_items"}[l.form]
}

// String is a string from outside the template: [Format.Render] never finds a
// control token in it.
func String(s string) Value { return outside(s) }

// Bool, Int, Float and None are the plain values.
func Bool(b bool) Value     { return boolean(b) }
func Int(i int64) Value     { return integer(i) }
func Float(f float64) Value { return float(f) }
func None() Value           { return none{} }

// NewList is a list of the given values.
func NewList(items ...Value) *List { return &List{items: items} }

func tuple(items ...Value) *List { return &List{items: items, form: formTuple} }

// Append adds to the end of the list.
func (l *List) Append(v Value) { l.items = append(l.items, v) }

// Map is a dictionary that keeps the order in which keys were first set.
type Map struct {
	keys   []Value
	vals   []Value
	hashes []hashKey       // of the keys
	index  map[hashKey]int // nil while the map is small
}

// hashKey identifies a key as Python's equality does: 1, 1.0 and True are one key.
type hashKey struct {
	kind byte
	s    string
}

const smallMap = 8

// NewMap is an empty map.
func NewMap() *Map { return &Map{} }

// Set sets a key. The key counts as written by the template's side.
func (m *Map) Set(key string, v Value) { m.set(hashKey{'s', key}, lit(key), v) }

// Get returns the value of a key.
func (m *Map) Get(key string) (Value, bool) { return m.get(hashKey{'s', key}) }

// Len is the number of keys.
func (m *Map) Len() int { return len(m.keys) }

func (m *Map) find(h hashKey) int {
	if m.index != nil {
		if i, ok := m.index[h]; ok {
			return i
		}
		return -1
	}
	for i := range m.hashes {
		if m.hashes[i] == h {
			return i
		}
	}
	return -1
}

func (m *Map) get(h hashKey) (Value, bool) {
	if i := m.find(h); i >= 0 {
		return m.vals[i], true
	}
	return nil, false
}

func (m *Map) set(h hashKey, key, v Value) {
	if i := m.find(h); i >= 0 {
		m.vals[i] = v
		return
	}
	m.keys = append(m.keys, key)
	m.vals = append(m.vals, v)
	m.hashes = append(m.hashes, h)
	if m.index != nil {
		m.index[h] = len(m.keys) - 1
	} else if len(m.keys) > smallMap {
		m.reindex()
	}
}

func (m *Map) reindex() {
	m.index = make(map[hashKey]int, len(m.hashes))
	for i, h := range m.hashes {
		m.index[h] = i
	}
}

func (m *Map) remove(h hashKey) (Value, bool) {
	i := m.find(h)
	if i < 0 {
		return nil, false
	}
	v := m.vals[i]
	m.keys = append(m.keys[:i:i], m.keys[i+1:]...)
	m.vals = append(m.vals[:i:i], m.vals[i+1:]...)
	m.hashes = append(m.hashes[:i:i], m.hashes[i+1:]...)
	if m.index != nil {
		m.reindex()
	}
	return v, true
}

func (m *Map) copy() *Map {
	c := &Map{
		keys:   append([]Value(nil), m.keys...),
		vals:   append([]Value(nil), m.vals...),
		hashes: append([]hashKey(nil), m.hashes...),
	}
	if m.index != nil {
		c.reindex()
	}
	return c
}

// hash gives the identity of a key, false for values that Python cannot hash.
func (r *run) hash(v Value) (hashKey, bool) {
	switch v := v.(type) {
	case text:
		return hashKey{'s', v.s}, true
	case none:
		return hashKey{'0', ""}, true
	case boolean:
		if v {
			return hashKey{'n', "1"}, true
		}
		return hashKey{'n', "0"}, true
	case integer:
		return hashKey{'n', strconv.FormatInt(int64(v), 10)}, true
	case bigint:
		return hashKey{'n', v.String()}, true
	case float:
		f := float64(v)
		if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
			return hashKey{'n', strconv.FormatInt(int64(f), 10)}, true
		}
		return hashKey{'n', floatRepr(f)}, true
	case *List:
		if v.form != formTuple {
			return hashKey{}, false
		}
		r.enter(0)
		defer r.leave()
		var b strings.Builder
		for _, it := range v.items {
			h, ok := r.hash(it)
			if !ok {
				return hashKey{}, false
			}
			r.charge(cellBytes + len(h.s))
			fmt.Fprintf(&b, "%c%d:%s", h.kind, len(h.s), h.s)
		}
		return hashKey{'t', b.String()}, true
	}
	return hashKey{}, false
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case undefined, none:
		return false
	case boolean:
		return bool(v)
	case integer:
		return v != 0
	case float:
		return v != 0
	case text:
		return v.s != ""
	case *List:
		return len(v.items) > 0
	case *Map:
		return len(v.keys) > 0
	}
	return true
}

// copyValue copies containers, so that a template that changes one changes
// nothing of the caller's. Depth beyond the limit of nesting is refused.
func (r *run) copyValue(v Value) Value {
	switch v := v.(type) {
	case *List:
		r.enter(0)
		c := &List{items: make([]Value, len(v.items)), form: v.form}
		for i, it := range v.items {
			c.items[i] = r.copyValue(it)
		}
		r.leave()
		return c
	case *Map:
		r.enter(0)
		c := v.copy()
		for i, it := range v.vals {
			c.vals[i] = r.copyValue(it)
		}
		r.leave()
		return c
	}
	return v
}
