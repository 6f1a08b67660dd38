package app

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"atoll/core/llm"
	"atoll/core/llm/local"
	"atoll/core/permission"
	"atoll/core/prompt"
)

// The system prompt with the six tools is at most 900 tokens for the default model. Its smaller sister has the same tokenizer and
// template, and loads faster.
func TestPromptBudget(t *testing.T) {
	path := filepath.Join(os.Getenv("ATOLL_MODELS"), "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("ATOLL_MODELS has no qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
	}
	m, err := local.Open(context.Background(), local.Options{Path: path, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p := newPlace(t, nil).script(`{}`)
	reg, err := (&toolbox{opts: toolOptions(p.opts, p.opts.Workspace)}).registry("")
	skipWithoutTools(t, err)
	if err != nil {
		t.Fatal(err)
	}
	req := &llm.Request{System: prompt.Build(prompt.Options{OS: "linux", CanWrite: true})}
	for _, sp := range reg.Specs(permission.WorkspaceWrite) {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: sp.Name, Description: sp.Description, Parameters: sp.Parameters})
	}
	if len(req.Tools) != 6 {
		t.Fatal(len(req.Tools), "tools")
	}
	n, err := m.CountTokens(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tokens", n)
	if n > 900 {
		t.Errorf("the prompt has %d tokens, more than 900", n)
	}
}
