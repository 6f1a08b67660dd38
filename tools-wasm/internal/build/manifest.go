package main

import (
	"encoding/json"
	"fmt"

	"atoll/sandbox/toolabi"
	"atoll/tools-wasm/coretools/tools"
)

// Manifests returns the manifests of all tools as one JSON array, made from the tools' own declarations.
func Manifests() ([]byte, error) {
	var list []toolabi.Manifest
	for _, t := range tools.All() {
		m := toolabi.Manifest{
			Name:        t.Name,
			Description: t.Description,
			Parameters:  json.RawMessage(t.Schema()),
			Limits:      toolabi.Limits{WallMS: 60_000, MemoryPages: 4096, OutputBytes: 256 << 10},
		}
		if err := m.Validate(); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	// Written by hand so that schemas stay in one line and in the order of the arguments.
	out := []byte("[\n")
	for i, m := range list {
		line, err := json.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", m.Name, err)
		}
		out = append(out, line...)
		if i < len(list)-1 {
			out = append(out, ',')
		}
		out = append(out, '\n')
	}
	return append(out, "]\n"...), nil
}
