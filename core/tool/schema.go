package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of a schema and of arguments.
const maxDepth = 32

// schema is the part of JSON Schema that tools use: type, properties, required, additionalProperties (false unless it says
// true), items, enum. Other keywords are for the model to read and are not checked here.
type schema struct {
	Type       string             `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Additional *bool              `json:"additionalProperties"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`

	order []string // property names as the schema lists them
}

// parseSchema reads the schema of a tool's arguments.
func parseSchema(b json.RawMessage) (*schema, error) {
	if len(b) == 0 {
		return &schema{Type: "object"}, nil
	}
	var s schema
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	if err := s.init(b, 0); err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("type is %q, not object", s.Type)
	}
	return &s, nil
}

func (s *schema) init(raw json.RawMessage, depth int) error {
	if depth > maxDepth {
		return errors.New("nested too deeply")
	}
	switch s.Type {
	case "", "object", "array", "string", "integer", "number", "boolean", "null":
	default:
		return fmt.Errorf("unknown type %q", s.Type)
	}
	var parts struct {
		Properties json.RawMessage `json:"properties"`
		Items      json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	if s.Items != nil {
		if err := s.Items.init(parts.Items, depth+1); err != nil {
			return fmt.Errorf("items: %w", err)
		}
	}
	if len(s.Properties) == 0 {
		return nil
	}
	members, err := objectMembers(parts.Properties)
	if err != nil {
		return err
	}
	for _, m := range members {
		p := s.Properties[m.key]
		if p == nil {
			return fmt.Errorf("property %q is null", m.key)
		}
		if err := p.init(m.value, depth+1); err != nil {
			return fmt.Errorf("property %q: %w", m.key, err)
		}
		s.order = append(s.order, m.key)
	}
	for _, r := range s.Required {
		if s.Properties[r] == nil {
			return fmt.Errorf("required property %q is not described", r)
		}
	}
	return nil
}

// usage describes the arguments for a model that got them wrong: `path (string), offset? (integer)`.
func (s *schema) usage() string {
	if len(s.order) == 0 {
		return "no arguments"
	}
	parts := make([]string, len(s.order))
	for i, name := range s.order {
		opt := "?"
		if slices.Contains(s.Required, name) {
			opt = ""
		}
		t := s.Properties[name].Type
		if t == "" {
			t = "any"
		}
		parts[i] = fmt.Sprintf("%s%s (%s)", name, opt, t)
	}
	return strings.Join(parts, ", ")
}

type member struct {
	key   string
	value json.RawMessage
}

// objectMembers returns the members of a JSON object in order. A key that stands twice is an error.
func objectMembers(raw json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	tok, err := dec.Token()
	if err != nil {
		return nil, syntaxError(err)
	}
	if tok != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var out []member
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, syntaxError(err)
		}
		key := tok.(string) // the decoder gives only strings as keys
		if seen[key] {
			return nil, fmt.Errorf("%q is given twice", key)
		}
		seen[key] = true
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, syntaxError(err)
		}
		out = append(out, member{key, v})
	}
	if _, err := dec.Token(); err != nil {
		return nil, syntaxError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON object")
	}
	return out, nil
}

func syntaxError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON ends too early")
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

// check returns the arguments as the schema wants them.
func (s *schema) check(input json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(input)) == 0 || string(bytes.TrimSpace(input)) == "null" {
		input = json.RawMessage("{}")
	}
	return s.object(input, "", 0)
}

func (s *schema) object(raw json.RawMessage, at string, depth int) (json.RawMessage, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	members, err := objectMembers(raw)
	if err != nil {
		if at != "" {
			return nil, fmt.Errorf("%q: %w", at, err)
		}
		return nil, err
	}
	var out bytes.Buffer
	out.WriteByte('{')
	given := map[string]bool{}
	for _, m := range members {
		name := join(at, m.key)
		p := s.Properties[m.key]
		if p == nil {
			if s.Additional == nil || !*s.Additional {
				return nil, fmt.Errorf("unknown argument %q", name)
			}
			p = &schema{}
		}
		if string(bytes.TrimSpace(m.value)) == "null" && p.Type != "null" && !slices.Contains(s.Required, m.key) {
			continue
		}
		v, err := p.value(m.value, name, depth+1)
		if err != nil {
			return nil, err
		}
		given[m.key] = true
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			return nil, err
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(v)
	}
	for _, r := range s.Required {
		if !given[r] {
			return nil, fmt.Errorf("%q is missing", join(at, r))
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func (s *schema) value(raw json.RawMessage, at string, depth int) (json.RawMessage, error) {
	if depth > maxDepth {
		return nil, errors.New("nested too deeply")
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, fmt.Errorf("%q is empty", at)
	}
	got := kindOf(raw[0])
	var err error
	switch s.Type {
	case "":
	case "object":
		if got != "object" {
			return nil, mismatch(at, "an object", got)
		}
		if raw, err = s.object(raw, at, depth); err != nil {
			return nil, err
		}
	case "array":
		if got != "array" {
			return nil, mismatch(at, "an array", got)
		}
		if raw, err = s.array(raw, at, depth); err != nil {
			return nil, err
		}
	case "string":
		if got != "string" {
			return nil, mismatch(at, "a string", got)
		}
	case "integer", "number":
		if got == "string" {
			raw = unquoteNumber(raw)
			got = kindOf(raw[0])
		}
		if got != "number" {
			return nil, mismatch(at, "a number", got)
		}
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is out of range", at)
		}
		if s.Type == "integer" {
			if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
				return nil, fmt.Errorf("%q must be a whole number", at)
			}
			raw = strconv.AppendInt(nil, int64(f), 10)
		}
	case "boolean":
		if string(raw) == `"true"` || string(raw) == `"false"` {
			raw = raw[1 : len(raw)-1]
			got = "boolean"
		}
		if got != "boolean" {
			return nil, mismatch(at, "true or false", got)
		}
	case "null":
		if got != "null" {
			return nil, mismatch(at, "null", got)
		}
	}
	if len(s.Enum) > 0 && !s.inEnum(raw) {
		allowed, err := json.Marshal(s.Enum)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%q must be one of %s", at, allowed)
	}
	return raw, nil
}

func (s *schema) array(raw json.RawMessage, at string, depth int) (json.RawMessage, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("%q: %w", at, syntaxError(err))
	}
	if s.Items == nil {
		return raw, nil
	}
	for i, it := range items {
		v, err := s.Items.value(it, fmt.Sprintf("%s[%d]", at, i), depth+1)
		if err != nil {
			return nil, err
		}
		items[i] = v
	}
	return json.Marshal(items)
}

func (s *schema) inEnum(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	for _, e := range s.Enum {
		if reflect.DeepEqual(e, v) {
			return true
		}
	}
	return false
}

func kindOf(first byte) string {
	switch first {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

func mismatch(at, want, got string) error {
	return fmt.Errorf("%q must be %s, not %s", at, want, got)
}

// unquoteNumber returns the number in a JSON string, or the string where it holds none.
func unquoteNumber(raw json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return raw
	}
	s = strings.TrimSpace(s)
	var n json.Number
	if s == "" || json.Unmarshal([]byte(s), &n) != nil || s[0] == '"' {
		return raw
	}
	return json.RawMessage(s)
}
