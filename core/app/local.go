package app

import (
	"context"
	"errors"

	"atoll/core/llm"
	"atoll/core/llm/script"
)

func openLocal(context.Context, string, Options) (llm.Model, error) {
	return nil, &llm.Error{Kind: llm.Load, Err: errors.New("local models are not supported in this build")}
}

// newParser makes the parser for the raw output in a script.
func newParser(string, []llm.ToolSpec) (script.Parser, error) {
	return nil, errors.New("raw output is not supported in this build")
}
