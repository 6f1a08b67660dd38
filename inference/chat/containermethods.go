package chat

// mapMethod is a method of dict, nil where there is none of that name. The ones
// that change the dictionary are what Jinja2's immutable sandbox refuses and
// other engines allow; templates in use need them.
func mapMethod(name string) mapFunc {
	switch name {
	case "items":
		return func(r *run, line int, m *Map, a args) Value {
			a.bind(r, line, name)
			return r.items(m)
		}
	case "keys":
		return func(r *run, line int, m *Map, a args) Value {
			a.bind(r, line, name)
			r.charge(cellBytes * len(m.keys))
			return &List{items: append([]Value(nil), m.keys...), form: formKeys}
		}
	case "values":
		return func(r *run, line int, m *Map, a args) Value {
			a.bind(r, line, name)
			r.charge(cellBytes * len(m.keys))
			return &List{items: append([]Value(nil), m.vals...), form: formValues}
		}
	case "get", "pop", "setdefault":
		return func(r *run, line int, m *Map, a args) Value {
			b := a.bind(r, line, name, "key", "default")
			if b[0] == nil {
				r.fail(line, "TypeError: %s needs an argument", name)
			}
			h, ok := r.hash(b[0])
			if !ok {
				r.fail(line, "TypeError: unhashable type: '%s'", b[0].pyType())
			}
			def := b[1]
			if def == nil {
				def = none{}
			}
			if name == "pop" {
				r.charge(cellBytes * len(m.keys))
				if v, ok := m.remove(h); ok {
					return v
				}
				if b[1] == nil {
					r.fail(line, "KeyError: %s", r.repr(b[0], line).s)
				}
				return def
			}
			if v, ok := m.get(h); ok {
				return v
			}
			if name == "setdefault" {
				r.put(m, b[0], def, line)
			}
			return def
		}
	case "copy":
		return func(r *run, line int, m *Map, a args) Value {
			a.bind(r, line, name)
			r.charge(2 * cellBytes * len(m.keys))
			return m.copy()
		}
	case "update":
		return func(r *run, line int, m *Map, a args) Value {
			r.update(m, a, line)
			return none{}
		}
	case "clear":
		return func(r *run, line int, m *Map, a args) Value {
			*m = Map{}
			return none{}
		}
	}
	return nil
}

func (r *run) items(m *Map) *List {
	r.charge(4 * cellBytes * len(m.keys))
	l := &List{items: make([]Value, len(m.keys)), form: formItems}
	for i, k := range m.keys {
		l.items[i] = tuple(k, m.vals[i])
	}
	return l
}

// update is dict.update and dict(): a mapping or pairs, and keywords.
func (r *run) update(m *Map, a args, line int) {
	if len(a.pos) > 1 {
		r.fail(line, "TypeError: dict expected at most 1 argument, got %d", len(a.pos))
	}
	for _, v := range a.pos {
		if o, ok := v.(*Map); ok {
			for i, k := range append([]Value(nil), o.keys...) {
				r.put(m, k, o.vals[i], line)
			}
			continue
		}
		for _, it := range r.iterate(v, line) {
			p := r.iterate(it, line)
			if len(p) != 2 {
				r.fail(line, "ValueError: dictionary update sequence element has length %d; 2 is required", len(p))
			}
			r.put(m, p[0], p[1], line)
		}
	}
	for _, k := range a.kw {
		r.put(m, lit(k.name), k.v, line)
	}
}

// listMethod is a method of a sequence, nil where there is none of that name.
func listMethod(name string, form listForm) listFunc {
	switch name {
	case "index", "count":
		return func(r *run, line int, l *List, a args) Value {
			v := a.bind(r, line, name, "value")[0]
			if v == nil {
				r.fail(line, "TypeError: %s needs an argument", name)
			}
			n := 0
			for i, it := range l.items {
				if r.equal(it, v, line) {
					if name == "index" {
						return integer(i)
					}
					n++
				}
			}
			if name == "index" {
				r.fail(line, "ValueError: value is not in list")
			}
			return integer(n)
		}
	}
	if form != formList {
		return nil
	}
	switch name {
	case "copy":
		return func(r *run, line int, l *List, a args) Value {
			r.charge(cellBytes * len(l.items))
			return NewList(append([]Value(nil), l.items...)...)
		}
	case "append":
		return func(r *run, line int, l *List, a args) Value {
			v := a.bind(r, line, name, "object")[0]
			if v == nil {
				r.fail(line, "TypeError: append needs an argument")
			}
			r.charge(cellBytes)
			l.items = append(l.items, v)
			return none{}
		}
	case "extend":
		return func(r *run, line int, l *List, a args) Value {
			v := a.bind(r, line, name, "iterable")[0]
			if v == nil {
				r.fail(line, "TypeError: extend needs an argument")
			}
			more := r.iterate(v, line)
			r.charge(cellBytes * len(more))
			l.items = append(l.items, more...)
			return none{}
		}
	case "insert":
		return func(r *run, line int, l *List, a args) Value {
			b := a.bind(r, line, name, "index", "object")
			if b[0] == nil || b[1] == nil {
				r.fail(line, "TypeError: insert needs two arguments")
			}
			i := r.intArg(b[0], 0, name, line)
			if i < 0 {
				i += len(l.items)
			}
			i = max(0, min(i, len(l.items)))
			r.charge(cellBytes * len(l.items))
			items := append([]Value(nil), l.items[:i]...)
			l.items = append(append(items, b[1]), l.items[i:]...)
			return none{}
		}
	case "pop":
		return func(r *run, line int, l *List, a args) Value {
			i := r.intArg(a.bind(r, line, name, "index")[0], -1, name, line)
			if i < 0 {
				i += len(l.items)
			}
			if i < 0 || i >= len(l.items) {
				r.fail(line, "IndexError: pop index out of range")
			}
			v := l.items[i]
			r.charge(cellBytes * len(l.items))
			l.items = append(append([]Value(nil), l.items[:i]...), l.items[i+1:]...)
			return v
		}
	case "reverse":
		return func(r *run, line int, l *List, a args) Value {
			l.items = r.reversed(l.items)
			return none{}
		}
	}
	return nil
}

func (r *run) reversed(items []Value) []Value {
	r.charge(cellBytes * len(items))
	out := make([]Value, len(items))
	for i, it := range items {
		out[len(items)-1-i] = it
	}
	return out
}
