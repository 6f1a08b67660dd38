package engine

import (
	"os"
	"path/filepath"
	"testing"
)

// realModel returns the path of a real model file, from the directory that
// ATOLL_MODELS names. Without it the test is skipped, and fails where CI is true.
func realModel(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("ATOLL_MODELS")
	if dir != "" {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	msg := "needs the model file " + name + " in the directory that ATOLL_MODELS names (atoll model pull)"
	if os.Getenv("CI") == "true" {
		t.Fatal(msg)
	}
	t.Skip(msg)
	return ""
}

const (
	smollm2   = "SmolLM2-135M-Instruct.Q4_1.gguf"
	qwenHalf  = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
	qwenLarge = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
)
