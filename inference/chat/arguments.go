package chat

import (
	"fmt"
	"strings"
)

// toolInfo is an offered tool with its schema read.
type toolInfo struct {
	name   string
	schema *Map // of the arguments
	props  *Map
}

// newToolInfo reads a tool's schema. One that is no JSON object counts as empty:
// the tool's own check of its arguments decides then.
func newToolInfo(t Tool) *toolInfo {
	info := &toolInfo{name: t.Name, schema: NewMap(), props: NewMap()}
	if len(t.Parameters) > 0 {
		if v, err := FromJSON(t.Parameters); err == nil {
			if m, ok := v.(*Map); ok {
				info.schema = m
			}
		}
	}
	if v, ok := info.schema.Get("properties"); ok {
		if m, ok := v.(*Map); ok {
			info.props = m
		}
	}
	return info
}

func (t *toolInfo) required() []string {
	var out []string
	if v, ok := t.schema.Get("required"); ok {
		if l, ok := v.(*List); ok {
			for _, it := range l.items {
				if s, ok := it.(text); ok {
					out = append(out, s.s)
				}
			}
		}
	}
	return out
}

// converter fits arguments to a schema. It changes a value only where nothing is
// lost: "20" to 20, 20.0 to 20, "True" to true, 42 to "42", a scalar to a list of
// one, a JSON text to the object or array in it. Enumerated values are never
// changed.
type converter struct {
	root *Map
	refs int // local references followed, to end cycles
}

// fit converts the arguments of a call.
func (t *toolInfo) fit(args *Map) (*Map, error) {
	c := &converter{root: t.schema}
	return c.object(args, t.schema, "")
}

func (c *converter) object(in, schema *Map, path string) (*Map, error) {
	props := NewMap()
	if v, ok := schema.Get("properties"); ok {
		if m, ok := v.(*Map); ok {
			props = m
		}
	}
	need := map[string]bool{}
	info := toolInfo{schema: schema}
	for _, r := range info.required() {
		need[r] = true
	}
	out := NewMap()
	for i, k := range in.keys {
		kt, ok := k.(text)
		if !ok {
			return nil, fmt.Errorf("%skey %s is not a string", path, k.pyType())
		}
		name, v := kt.s, in.vals[i]
		ps, known := props.Get(name)
		if !known {
			if extra, ok := schema.Get("additionalProperties"); ok {
				if extra == boolean(false) {
					return nil, fmt.Errorf("unknown argument %q (known: %s)", path+name, keyNames(props))
				}
				if m, ok := extra.(*Map); ok {
					var err error
					if v, err = c.value(v, m, path+name); err != nil {
						return nil, err
					}
				}
			}
			out.set(hashKey{'s', name}, kt, v)
			continue
		}
		psm, ok := ps.(*Map)
		if !ok {
			out.set(hashKey{'s', name}, kt, v)
			continue
		}
		if _, isNull := v.(none); isNull && !need[name] && !c.allowsNull(psm) {
			continue // null for an argument that may be absent
		}
		nv, err := c.value(v, psm, path+name)
		if err != nil {
			return nil, err
		}
		out.set(hashKey{'s', name}, kt, nv)
	}
	for _, r := range info.required() {
		if _, ok := out.Get(r); !ok {
			return nil, fmt.Errorf("missing argument %q", path+r)
		}
	}
	return out, nil
}

func keyNames(m *Map) string {
	var out []string
	for _, k := range m.keys {
		if t, ok := k.(text); ok {
			out = append(out, t.s)
		}
	}
	return strings.Join(out, ", ")
}

// types are the names under "type", nil where the schema has none.
func types(schema *Map) []string {
	v, ok := schema.Get("type")
	if !ok {
		return nil
	}
	switch v := v.(type) {
	case text:
		return []string{v.s}
	case *List:
		var out []string
		for _, it := range v.items {
			if t, ok := it.(text); ok {
				out = append(out, t.s)
			}
		}
		return out
	}
	return nil
}

func (c *converter) allowsNull(schema *Map) bool {
	ts := types(schema)
	for _, t := range ts {
		if t == "null" {
			return true
		}
	}
	for _, alt := range alternatives(schema) {
		if c.allowsNull(alt) {
			return true
		}
	}
	if e, ok := schema.Get("enum"); ok {
		if l, ok := e.(*List); ok {
			for _, it := range l.items {
				if _, ok := it.(none); ok {
					return true
				}
			}
		}
	}
	return len(ts) == 0 && len(alternatives(schema)) == 0
}

func alternatives(schema *Map) []*Map {
	var out []*Map
	for _, key := range []string{"anyOf", "oneOf"} {
		if v, ok := schema.Get(key); ok {
			if l, ok := v.(*List); ok {
				for _, it := range l.items {
					if m, ok := it.(*Map); ok {
						out = append(out, m)
					}
				}
			}
		}
	}
	return out
}

// resolve follows a reference into the tool's own schema.
func (c *converter) resolve(schema *Map) *Map {
	for {
		v, ok := schema.Get("$ref")
		ref, isText := v.(text)
		if !ok || !isText || !strings.HasPrefix(ref.s, "#/") || c.refs > 100 {
			return schema
		}
		c.refs++
		cur := c.root
		for _, p := range strings.Split(ref.s[2:], "/") {
			next, _ := cur.Get(p)
			m, ok := next.(*Map)
			if !ok {
				return NewMap()
			}
			cur = m
		}
		schema = cur
	}
}

// value converts v to what schema wants.
func (c *converter) value(v Value, schema *Map, path string) (Value, error) {
	schema = c.resolve(schema)
	if alts := alternatives(schema); len(alts) > 0 {
		var first error
		for _, exact := range []bool{true, false} {
			for _, a := range alts {
				out, err := c.value(v, a, path)
				if err == nil && (!exact || sameKind(out, v)) {
					return out, nil
				}
				if first == nil {
					first = err
				}
			}
		}
		if first == nil {
			first = fmt.Errorf("argument %q fits no alternative", path)
		}
		return nil, first
	}
	out, err := c.typed(v, schema, path)
	if err != nil {
		return nil, err
	}
	allowed := []Value(nil)
	if e, ok := schema.Get("enum"); ok {
		if l, ok := e.(*List); ok {
			allowed = l.items
		}
	} else if k, ok := schema.Get("const"); ok {
		allowed = []Value{k}
	}
	if allowed == nil {
		return out, nil
	}
	r := &run{opts: ExecOptions{}.withDefaults()}
	for _, a := range allowed {
		if sameKind(a, out) && equalJSON(r, a, out) {
			return out, nil
		}
	}
	return nil, fmt.Errorf("argument %q is %s, allowed: %s", path, pythonJSON(out), pythonJSON(NewList(allowed...)))
}

// equalJSON compares two JSON values; beyond the limits of a run they differ.
func equalJSON(r *run, a, b Value) (same bool) {
	var err error
	defer func() { same = same && err == nil }()
	defer catch(&err)
	return r.equal(a, b, 0)
}

func sameKind(a, b Value) bool {
	if isNumber(a) && isNumber(b) {
		_, x := a.(boolean)
		_, y := b.(boolean)
		return x == y
	}
	return a.pyType() == b.pyType()
}

// typed converts v to one of the types of a schema: as it is where one fits,
// otherwise to the first it can become.
func (c *converter) typed(v Value, schema *Map, path string) (Value, error) {
	ts := types(schema)
	if len(ts) == 0 {
		switch {
		case schema.Len() > 0 && hasKey(schema, "properties"):
			ts = []string{"object"}
		case hasKey(schema, "items"):
			ts = []string{"array"}
		default:
			return v, nil
		}
	}
	for _, t := range ts {
		if isType(v, t) {
			return c.inner(v, t, schema, path)
		}
	}
	for _, t := range ts {
		if out, ok := c.become(v, t, schema); ok {
			return c.inner(out, t, schema, path)
		}
	}
	return nil, fmt.Errorf("argument %q must be of type %s, got %s", path, strings.Join(ts, " or "), shortJSON(v))
}

func shortJSON(v Value) string {
	s := pythonJSON(v)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:77], "") + "..."
	}
	return s
}

func hasKey(m *Map, key string) bool {
	_, ok := m.Get(key)
	return ok
}

// inner converts what is inside an object or array.
func (c *converter) inner(v Value, t string, schema *Map, path string) (Value, error) {
	switch v := v.(type) {
	case *Map:
		return c.object(v, schema, path+".")
	case *List:
		is, _ := schema.Get("items")
		items, ok := is.(*Map)
		if !ok {
			return v, nil
		}
		out := NewList()
		for i, it := range v.items {
			nv, err := c.value(it, items, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			out.Append(nv)
		}
		return out, nil
	case float:
		if t == "integer" {
			if n, ok := intOfFloat(float64(v)); ok {
				return n, nil
			}
		}
	}
	return v, nil
}

// isType says whether v is a value of a JSON Schema type.
func isType(v Value, t string) bool {
	switch v := v.(type) {
	case text:
		return t == "string"
	case boolean:
		return t == "boolean"
	case integer, bigint:
		return t == "integer" || t == "number"
	case float:
		n, ok := intOfFloat(float64(v))
		f, _ := floatOf(n)
		return t == "number" || t == "integer" && ok && f == float64(v)
	case none:
		return t == "null"
	case *List:
		return t == "array"
	case *Map:
		return t == "object"
	}
	return false
}

// become changes v to type t where nothing is lost.
func (c *converter) become(v Value, t string, schema *Map) (Value, bool) {
	s, isText := v.(text)
	trimmed := strings.TrimSpace(s.s)
	switch t {
	case "string":
		switch v.(type) {
		case boolean, integer, bigint, float:
			return outside(pythonJSON(v)), true
		}
	case "integer", "number":
		if isText && jsonNumber(trimmed) {
			if n, err := numberValue(strings.TrimPrefix(trimmed, "+")); err == nil && isType(n, t) {
				return n, true
			}
		}
	case "boolean":
		switch trimmed {
		case "true", "True", "TRUE":
			return boolean(true), true
		case "false", "False", "FALSE":
			return boolean(false), true
		}
	case "null":
		if isText && (trimmed == "null" || trimmed == "None") {
			return none{}, true
		}
	case "object", "array":
		if isText {
			if vs, end := looseAll(s.s, true); end <= looseClosed && len(vs) == 1 && isType(vs[0], t) {
				return vs[0], true
			}
		}
		if t == "array" {
			if _, isNull := v.(none); isNull {
				return nil, false
			}
			if _, isMap := v.(*Map); isMap {
				is, _ := schema.Get("items")
				if m, ok := is.(*Map); ok && !anyType(m, "object") {
					return nil, false
				}
			}
			return NewList(v), true
		}
	}
	return nil, false
}

func anyType(schema *Map, t string) bool {
	ts := types(schema)
	for _, x := range ts {
		if x == t {
			return true
		}
	}
	return len(ts) == 0
}
