package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"atoll/core/permission"
	"atoll/core/service"
	"atoll/core/tool/sandboxed"
)

// ToolCommand is one call of a tool by hand, ToolOutcome what it left.
type (
	ToolCommand = sandboxed.Command
	ToolOutcome = sandboxed.Outcome
)

// RunTool makes a call without an agent: `atoll tool run`. Workspace, mode,
// cache and private folders come from o. What keeps the call from being made is
// an error with its exit code; a tool that ran and failed is an outcome.
func RunTool(ctx context.Context, o Options, c ToolCommand) (*ToolOutcome, error) {
	ws, err := workspace(o.Workspace)
	if err != nil {
		return nil, err
	}
	if o.ModelsDir == "" {
		return nil, errors.New("no models directory")
	}
	mode := permission.ReadOnly
	if o.Mode != "" {
		if mode, err = service.ParseMode(o.Mode); err != nil {
			return nil, err
		}
	}
	c.Workspace, c.Mode, c.CacheDir, c.Private = ws, mode, cacheDir(o.CacheDir), private(o)
	out, err := c.Run(ctx)
	if errors.Is(err, sandboxed.ErrCommand) {
		err = &service.Error{Code: service.ExitUsage, Err: err}
	}
	return out, err
}

// ToolSpec describes a tool for lists.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Access      string          `json:"access"` // the most that a call does to the workspace: read or write
	Parameters  json.RawMessage `json:"parameters"`
}

// ToolSpecs lists the tools of this program.
func ToolSpecs() ([]ToolSpec, error) {
	ts, err := sandboxed.New(sandboxed.Options{Workspace: anyWorkspace()})
	if err != nil {
		return nil, err
	}
	defer ts.Close()
	specs := []ToolSpec{}
	for _, t := range ts.List() {
		sp := t.Spec()
		specs = append(specs, ToolSpec{Name: sp.Name, Description: sp.Description, Access: string(sp.Access), Parameters: sp.Parameters})
	}
	return specs, nil
}

// anyWorkspace is an absolute path for tools that are only described.
func anyWorkspace() string {
	ws, err := workspace("")
	if err != nil {
		return os.TempDir()
	}
	return ws
}

// CheckSandbox compiles the tools and runs one of them on the workspace. It
// returns what that left when tools can run here, else why not.
func CheckSandbox(ctx context.Context, o Options) (*ToolOutcome, error) {
	out, err := RunTool(ctx, o, ToolCommand{Name: "ls", Args: []byte("{}")})
	if err != nil {
		return nil, err
	}
	if !out.OK() {
		return nil, errors.New("the tool ls failed: " + string(out.Stderr) + out.Error)
	}
	return out, nil
}
