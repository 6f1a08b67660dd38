package model

import (
	"errors"
	"strings"

	"atoll/inference/gguf"
)

// architecture is everything that atoll knows about a family of models.
type architecture struct {
	name    string // general.architecture
	hyper   func(f *gguf.File) (Hyper, error)
	tensors []entry
}

// architectures lists what is supported. A new one is a file like llama.go, with its
// hyper-parameters and its table of tensors, and an entry here.
func architectures() []architecture {
	return []architecture{llama(), qwen2()}
}

// Architectures returns the names of the supported architectures.
func Architectures() []string {
	var names []string
	for _, a := range architectures() {
		names = append(names, a.name)
	}
	return names
}

// find returns the architecture that the file names.
func find(f *gguf.File) (architecture, error) {
	const key = "general.architecture"
	if kind, err := f.StringOr("general.type", "model"); err != nil {
		return architecture{}, err
	} else if kind != "model" {
		return architecture{}, f.KeyError("general.type", "%q is not a model that answers on its own; give the file of the model itself", kind)
	}
	if n, err := f.UintOr("split.count", 1); err != nil {
		return architecture{}, err
	} else if n > 1 {
		return architecture{}, f.KeyError("split.count", "the model is split over %d files; merge them into one first (llama-gguf-split --merge)", n)
	}
	name, err := f.String(key)
	if errors.Is(err, gguf.ErrMissing) {
		return architecture{}, f.KeyError(key, "missing; the file does not hold a model")
	}
	if err != nil {
		return architecture{}, err
	}
	for _, a := range architectures() {
		if a.name == name {
			return a, nil
		}
	}
	return architecture{}, f.KeyError(key, "architecture %.100q is not supported; supported: %s", name, strings.Join(Architectures(), ", "))
}
