package app

import (
	"context"

	"atoll/core/llm"
	"atoll/core/llm/local"
	"atoll/core/llm/script"
)

func openLocal(ctx context.Context, path string, o Options) (llm.Model, error) {
	return local.Open(ctx, local.Options{Path: path, Context: o.Ctx, Threads: o.Threads, CPU: o.CPU, Progress: o.OnLoad})
}

// newParser makes the parser for the raw output in a script.
func newParser(family string, tools []llm.ToolSpec) (script.Parser, error) {
	return local.NewParser(family, tools)
}
