package local

import (
	"encoding/json"
	"testing"

	"atoll/core/llm"
)

// An answer ends behind a fenced call and nowhere else, however it is cut into pieces.
func TestEnough(t *testing.T) {
	specs := []llm.ToolSpec{{Name: "read", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}}
	call := "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}"
	for _, c := range []struct {
		name, text, rest string
		specs            []llm.ToolSpec
		want             bool
	}{
		{"fenced call", "I look.\n\n```json\n" + call + "\n```", "\n\nThe file holds x.", specs, true},
		{"first of two", "```json\n" + call + "\n```", "\n```json\n" + call + "\n```", specs, true},
		{"no tools offered", "```json\n" + call + "\n```", "\nmore", nil, false},
		{"another tool", "```json\n{\"name\": \"rm\", \"arguments\": {}}\n```", "\nmore", specs, false},
		{"code", "```python\nx = 1\n```", "\nmore", specs, false},
		{"code, then a call", "```python\nx = 1\n```\nNow:\n```json\n" + call + "\n```", "\nmore", specs, true},
		{"bare call", " " + call, "\n```\nThis reads the file.", specs, true},
		{"bare call of another tool", "{\"name\": \"rm\", \"arguments\": {}}", "\nmore", specs, false},
		{"bare object behind words", "So: " + call, "\nmore", specs, false},
		{"opening fence only", "text\n```", "python\nx", specs, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := c.text + c.rest
			for size := 1; size <= 7; size++ {
				f := &fenced{specs: c.specs, parse: func() *parser {
					p, err := NewParser("hermes", c.specs)
					if err != nil {
						t.Fatal(err)
					}
					return p.(*parser)
				}}
				ended := -1
				for i := 0; i < len(all) && ended < 0; i += size {
					at := i
					for _, piece := range behindEnds(all[i:min(i+size, len(all))]) {
						at += len(piece)
						if ended < 0 && f.add(piece) {
							ended = at
						}
					}
				}
				if (ended >= 0) != c.want {
					t.Fatalf("size %d: ended at %d", size, ended)
				}
				if c.want && ended != len(c.text) {
					t.Errorf("size %d: ended at %d, the call ends at %d", size, ended, len(c.text))
				}
			}
		})
	}
}
