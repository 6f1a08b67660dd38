package app

import (
	"context"
	"errors"
	"os"
	"strings"

	"atoll/core/llm"
	"atoll/core/llm/script"
	"atoll/core/modelstore"
	"atoll/core/service"
)

// scriptPrefix marks a model reference that names a script.
const scriptPrefix = "script:"

// openModel loads the model that o.Model names. Every failure exits with ExitModel.
func openModel(ctx context.Context, o Options) (llm.Model, error) {
	m, err := loadModel(ctx, o)
	if err == nil {
		return m, nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil, err
	}
	return nil, &service.Error{Code: service.ExitModel, Err: err}
}

func loadModel(ctx context.Context, o Options) (llm.Model, error) {
	if path, ok := strings.CutPrefix(o.Model, scriptPrefix); ok {
		return openScript(path, o)
	}
	path, err := modelstore.New(modelstore.Options{Dir: o.ModelsDir}).Resolve(o.Model)
	if err != nil {
		return nil, err
	}
	return openLocal(ctx, path, o)
}

func openScript(path string, o Options) (llm.Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &llm.Error{Kind: llm.Load, Message: "open script", Err: err}
	}
	defer f.Close()
	return script.New(f, script.Options{Name: scriptPrefix + path, NewParser: newParser, Context: o.Ctx})
}
