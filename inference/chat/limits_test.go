package chat

import (
	"errors"
	"strings"
	"testing"
)

// A hostile template ends in an error, in bounded time and memory.
func TestTemplateLimits(t *testing.T) {
	limits := ExecOptions{MaxSteps: 200_000, MaxBytes: 4 << 20, MaxOutput: 1 << 20}
	for name, src := range map[string]string{
		"endless recursion":     "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"doubling string":       "{% set ns = namespace(s='xx') %}{% for i in range(1000) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"doubling list":         "{% set ns = namespace(l=[1]) %}{% for i in range(1000) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
		"repeated string":       "{{ 'x' * 10000000000 }}",
		"repeated list":         "{{ [1] * 10000000000 }}",
		"wide format":           "{{ '%9999d' % 1 * 100000 }}",
		"padding":               "{{ 'x'.center(100000000000) }}",
		"filter padding":        "{{ 'x' | center(100000000000) }}",
		"indent":                "{{ 'x\ny' | indent(100000000000) }}",
		"nested loops":          "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
		"long output":           "{% for a in range(90000) %}{{ a }}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}",
		"list within itself":    "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
		"compared with itself":  "{% set l = [] %}{% set _ = l.append(l) %}{% set k = [] %}{% set _ = k.append(k) %}{{ l == k }}",
		"replace nothing":       "{% set ns = namespace(s='abcdefgh') %}{% for i in range(100) %}{% set ns.s = ns.s | replace('', 'abcdefgh') %}{% endfor %}",
		"searching a long text": "{% set s = 'a' * 1000000 %}{% for i in range(90000) %}{{ 'b' in s }}{% endfor %}",
		"json of json":          "{% set ns = namespace(s='\"') %}{% for i in range(100) %}{% set ns.s = ns.s | tojson %}{% endfor %}",
		"recursive loop":        "{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}",
		"deep value":            "{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
		"joins":                 "{% set l = range(90000) | list %}{% for i in l %}{{ l | join(',') | length }}{% endfor %}",
		"batches":               "{{ [1] | batch(100000000000, 0) | list }}",
		"keys that share parts": "{% set k = ((((((1,)*30,)*30,)*30,)*30,)*30,)*30 %}{{ k in {} }}",
		"long keys":             "{% set k = ('a' * 100000,) * 50 %}{% for i in range(90000) %}{{ k in {} }}{% endfor %}",
		"slices":                "{{ [1] | slice(100000000000) | list }}",
	} {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Parse(src)
			if err != nil {
				t.Fatal(err)
			}
			out, err := tmpl.Execute(NewMap(), limits)
			if !errors.Is(err, ErrLimit) {
				t.Errorf("got %d bytes, error %v", len(out), err)
			}
		})
	}
}

// Memory has a limit of its own, whatever steps are allowed.
func TestByteLimit(t *testing.T) {
	for name, src := range map[string]string{
		"text":  "{% for i in range(1000) %}{% set x = 'a' ~ 'b' * 100 %}{% endfor %}",
		"lists": "{% for i in range(1000) %}{% set x = [1, 2, 3, 4] + [5] %}{% endfor %}",
		"maps":  "{% for i in range(1000) %}{% set x = {'a': 1, 'b': 2} %}{% endfor %}",
	} {
		tmpl, err := Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Execute(NewMap(), ExecOptions{MaxBytes: 40_000}); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := tmpl.Execute(NewMap(), ExecOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A template may change lists and dictionaries, but not the caller's.
func TestVariablesStay(t *testing.T) {
	vars := mustMap(t, []byte(`{"l": [1], "d": {"k": [2]}}`))
	tmpl, err := Parse("{% set _ = l.append(2) %}{% set _ = d.update({'x': 1}) %}{% set _ = d.k.append(3) %}{% set _ = d.pop('x') %}{{ l }}{{ d }}")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		out, err := tmpl.Execute(vars, ExecOptions{})
		if want := "[1, 2]{'k': [2, 3]}"; err != nil || out != want {
			t.Errorf("got %q, %v, want %q", out, err, want)
		}
	}
}

// So does one that is hard to parse.
func TestParseLimits(t *testing.T) {
	for name, src := range map[string]string{
		"brackets":  "{{ " + strings.Repeat("(", 100_000) + " }}",
		"lists":     "{{ " + strings.Repeat("[", 100_000) + " }}",
		"not":       "{{ " + strings.Repeat("not ", 100_000) + "x }}",
		"minus":     "{{ " + strings.Repeat("-", 100_000) + "x }}",
		"plus":      "{{ 1" + strings.Repeat("+1", 100_000) + " }}",
		"subscript": "{{ x" + strings.Repeat(".a", 100_000) + " }}",
		"filters":   "{{ x" + strings.Repeat("|e", 100_000) + " }}",
		"if":        strings.Repeat("{% if x %}", 50_000),
		"size":      strings.Repeat("x", maxSource+1),
		"digits":    "{{ " + strings.Repeat("9", 100_000) + " }}",
		"else":      "{{ x" + strings.Repeat(" if x else x", 20_000) + " }}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(src); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestErrorsNameTheirLine(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a\n{{ b c }}", "template line 2: expected end of print statement, got 'c'"},
		{"a\nb\n{% nosuch %}", "template line 3: unknown tag 'nosuch'"},
		{"{{ x | nosuch }}", "template line 1: no filter named 'nosuch'"},
		{"{{ x is nosuch }}", "template line 1: no test named 'nosuch'"},
		{"{% if x %}\n{{ 1 }}", "template line 1: unexpected end of template: looking for 'elif' or 'else' or 'endif'"},
		{"\n{% extends 'x' %}", "template line 2: tag 'extends' is not supported"},
		{"{% for x in y %}\n\n{{ x.y.z }}{% endfor %}", "template line 3: UndefinedError: 'dict object' has no attribute 'y'"},
		{"{%- if true -%}\n{{ raise_exception('no') }}{% endif %}", "template line 2: no"},
		{"{% break %}", "template line 1: 'break' outside of a loop"},
	} {
		vars := NewMap()
		vars.Set("y", NewList(NewMap()))
		tmpl, err := Parse(c.src)
		if err == nil {
			_, err = tmpl.Execute(vars, ExecOptions{})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v, want %s", c.src, err, c.want)
		}
	}
}
