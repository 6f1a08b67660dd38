package toolabi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds of a manifest.
const (
	maxManifestBytes   = 1 << 20
	maxNameBytes       = 64
	maxDescription     = 16 << 10
	maxCapabilities    = 64
	maxCapabilityBytes = 4096
)

// Manifest describes one tool.
type Manifest struct {
	// Name is what the model calls: a letter, then letters, digits, '_' and '-'.
	Name string `json:"name"`
	// Description goes into the prompt.
	Description string `json:"description"`
	// Parameters is the JSON Schema of the arguments: an object schema.
	Parameters json.RawMessage `json:"parameters"`
	// Capabilities are what the tool asks for beyond the workspace, see Capability.
	Capabilities []string `json:"capabilities,omitempty"`
	Limits       Limits   `json:"limits,omitzero"`
}

// Limits are the limits that a tool asks for. Zero means the default.
type Limits struct {
	WallMS       int64 `json:"wall_ms,omitempty"`
	MemoryPages  int64 `json:"memory_pages,omitempty"`
	OutputBytes  int64 `json:"output_bytes,omitempty"`
	WrittenBytes int64 `json:"written_bytes,omitempty"`
	OpenFiles    int64 `json:"open_files,omitempty"`
	Files        int64 `json:"files,omitempty"`
	// Fuel is the number of steps; 0 means not counted. Counting is not available in this version.
	Fuel int64 `json:"fuel,omitempty"`
}

// ParseManifest reads one manifest. Unknown keys, a second value, a missing field and a value out of range are
// errors.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := decodeStrict(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("parse manifest: %w", err)
	}
	if err := m.Validate(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// ParseManifests reads an array of manifests, as it lies beside a module that holds several tools. Names are
// unique in it.
func ParseManifests(data []byte) ([]Manifest, error) {
	var list []Manifest
	if err := decodeStrict(data, &list); err != nil {
		return nil, fmt.Errorf("parse manifests: %w", err)
	}
	seen := make(map[string]bool, len(list))
	for _, m := range list {
		if err := m.Validate(); err != nil {
			return nil, err
		}
		if seen[m.Name] {
			return nil, fmt.Errorf("manifest %q: named twice", m.Name)
		}
		seen[m.Name] = true
	}
	return list, nil
}

func decodeStrict(data []byte, v any) error {
	if len(data) > maxManifestBytes {
		return fmt.Errorf("%d bytes are more than %d", len(data), maxManifestBytes)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the value")
	}
	return nil
}

// Validate reports the first field that is out of range.
func (m Manifest) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("manifest %q: "+format, append([]any{m.Name}, args...)...)
	}
	if !validName(m.Name) {
		return bad("name: want a letter, then letters, digits, _ and -, at most %d bytes", maxNameBytes)
	}
	if m.Description == "" || len(m.Description) > maxDescription || !utf8.ValidString(m.Description) {
		return bad("description: want 1 to %d bytes of UTF-8", maxDescription)
	}
	var schema struct {
		Type string `json:"type"`
	}
	if len(m.Parameters) == 0 {
		return bad("parameters: missing")
	}
	if err := json.Unmarshal(m.Parameters, &schema); err != nil {
		return bad("parameters: %w", err)
	}
	if schema.Type != "object" {
		return bad(`parameters: type is %q, want "object"`, schema.Type)
	}
	if len(m.Capabilities) > maxCapabilities {
		return bad("capabilities: %d are more than %d", len(m.Capabilities), maxCapabilities)
	}
	for _, c := range m.Capabilities {
		if _, err := ParseCapability(c); err != nil {
			return bad("%w", err)
		}
	}
	return m.Limits.validate(bad)
}

func (l Limits) validate(bad func(string, ...any) error) error {
	for _, f := range []struct {
		name string
		v    int64
		max  int64
	}{
		{"wall_ms", l.WallMS, 24 * 3600 * 1000},
		{"memory_pages", l.MemoryPages, 65536},
		{"output_bytes", l.OutputBytes, 1 << 30},
		{"written_bytes", l.WrittenBytes, 1 << 40},
		{"open_files", l.OpenFiles, 1 << 16},
		{"files", l.Files, 1 << 24},
	} {
		if f.v < 0 || f.v > f.max {
			return bad("limits.%s: %d is not in 0 to %d", f.name, f.v, f.max)
		}
	}
	if l.Fuel != 0 {
		return bad("limits.fuel: counting steps is not available in this version")
	}
	return nil
}

func validName(s string) bool {
	if s == "" || len(s) > maxNameBytes {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '_' || c == '-')) {
			return false
		}
	}
	return true
}

// CapabilityKind is what a capability is about.
type CapabilityKind string

const (
	DirRead  CapabilityKind = "dir:read"
	DirWrite CapabilityKind = "dir:write"
	Env      CapabilityKind = "env"
	Exec     CapabilityKind = "exec"
	HTTP     CapabilityKind = "http"
	Clock    CapabilityKind = "clock"
	Random   CapabilityKind = "random"
)

// Capability is one thing a tool asks for: a directory beyond the workspace, a variable of the environment, a
// program, a host, the true clock, unpredictable random numbers.
type Capability struct {
	Kind CapabilityKind
	// Value is the directory, variable, program or host; empty for Clock and Random.
	Value string
}

// ParseCapability reads the text form, such as "dir:read:~/.cache/x", "env:LANG" or "clock".
func ParseCapability(s string) (Capability, error) {
	if len(s) > maxCapabilityBytes || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return Capability{}, fmt.Errorf("capability %.40q: want at most %d bytes of UTF-8", s, maxCapabilityBytes)
	}
	switch CapabilityKind(s) {
	case Clock, Random:
		return Capability{Kind: CapabilityKind(s)}, nil
	}
	for _, k := range []CapabilityKind{DirRead, DirWrite, Env, Exec, HTTP} {
		v, ok := strings.CutPrefix(s, string(k)+":")
		if !ok {
			continue
		}
		if v == "" {
			return Capability{}, fmt.Errorf("capability %q: nothing after the colon", s)
		}
		if (k == DirRead || k == DirWrite) && !strings.HasPrefix(v, "/") && v != "~" && !strings.HasPrefix(v, "~/") {
			return Capability{}, fmt.Errorf("capability %q: the directory must be absolute or start with ~/", s)
		}
		if k == Env && strings.ContainsRune(v, '=') {
			return Capability{}, fmt.Errorf("capability %q: a variable's name has no =", s)
		}
		return Capability{Kind: k, Value: v}, nil
	}
	return Capability{}, fmt.Errorf("capability %q: unknown", s)
}

// String returns the text form.
func (c Capability) String() string {
	if c.Value == "" {
		return string(c.Kind)
	}
	return string(c.Kind) + ":" + c.Value
}
