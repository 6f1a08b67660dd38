// Package sandboxed makes tools out of WebAssembly modules: a permitted call becomes a grant, the grant a run in the sandbox, and
// the run a result. It is the only package of core that knows the sandbox.
package sandboxed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"atoll/core/permission"
	"atoll/core/tool"
	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/toolabi"
	"atoll/sandbox/toolset"
)

// Options configure the tools of one workspace.
type Options struct {
	// Workspace is the absolute path of the workspace, without symbolic links. Required.
	Workspace string
	// CacheDir keeps compiled modules; empty means none.
	CacheDir string
	// Private are host paths that no tool sees, also when they lie in the workspace: settings and sessions.
	Private []string
	// Readable are further folders that every tool may read, where they exist: long results that were put aside.
	Readable []string
	// Limits are the user's maximum; zero fields are the defaults.
	Limits grant.Limits
	// Set holds the modules; nil means the built-in ones.
	Set *toolset.Set
}

// Tools are the tools of one workspace, with the runtime that runs them. They are safe for concurrent use.
type Tools struct {
	opts Options
	set  *toolset.Set
	list []tool.Tool

	mu       sync.Mutex // guards the fields below; held while modules are compiled
	rt       *sandbox.Runtime
	modules  map[string]*sandbox.Module
	readable []string
	closed   bool
}

// access says what the built-in tools do to the workspace. A tool that is not listed counts as one that
// may write anywhere.
var access = map[string]struct {
	access    permission.Access
	recursive bool
}{
	"read":  {permission.Read, false},
	"write": {permission.Write, false},
	"edit":  {permission.Write, false},
	"ls":    {permission.Read, false},
	"glob":  {permission.Read, true},
	"grep":  {permission.Read, true},
}

// New returns the tools. Nothing is compiled before the first call.
func New(o Options) (*Tools, error) {
	if !filepath.IsAbs(o.Workspace) {
		panic("BUG: workspace is not absolute: " + o.Workspace)
	}
	set := o.Set
	if set == nil {
		var err error
		if set, err = toolset.Builtin(); err != nil {
			return nil, fmt.Errorf("load tools: %w: %w", tool.ErrUnavailable, err)
		}
	}
	ts := &Tools{opts: o, set: set, modules: map[string]*sandbox.Module{}, readable: o.Readable}
	for _, m := range set.Manifests() {
		a, ok := access[m.Name]
		if !ok {
			a.access, a.recursive = permission.Write, true
		}
		ts.list = append(ts.list, &module{tools: ts, manifest: m, access: a.access, recursive: a.recursive})
	}
	return ts, nil
}

// List returns the tools.
func (ts *Tools) List() []tool.Tool { return ts.list }

// AddReadable lets the tools read one more folder, if it exists when they run.
func (ts *Tools) AddReadable(dir string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.readable = append(ts.readable[:len(ts.readable):len(ts.readable)], dir)
}

// module returns a compiled module.
func (ts *Tools) module(ctx context.Context, m toolabi.Manifest) (*sandbox.Module, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return nil, fmt.Errorf("%w: closed", tool.ErrUnavailable)
	}
	if mod := ts.modules[m.Name]; mod != nil {
		return mod, nil
	}
	if ts.rt == nil {
		rt, err := sandbox.New(ctx, sandbox.Options{CacheDir: ts.opts.CacheDir, Private: ts.opts.Private})
		if err != nil {
			return nil, unavailable(ctx, err)
		}
		ts.rt = rt
	}
	mod, err := ts.rt.Load(ctx, ts.set.Wasm(), m, sandbox.Builtin())
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	ts.modules[m.Name] = mod
	return mod, nil
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", tool.ErrUnavailable, err)
}

// Close frees the compiled modules. No call may be running.
func (ts *Tools) Close() error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed = true
	if ts.rt == nil {
		return nil
	}
	rt := ts.rt
	ts.rt = nil
	return rt.Close(context.Background())
}

// workspaceGrant is what every call in a workspace gets: the workspace as the mode says, and the variables that describe it.
func workspaceGrant(workspace string, mode permission.Mode) grant.Grant {
	kind := grant.ReadOnly
	if mode.Grants(permission.Write) {
		kind = grant.ReadWrite
	}
	env := []string{toolabi.EnvWorkspace + "=" + workspace}
	if rules := outerIgnore(workspace); rules != "" {
		env = append(env, toolabi.EnvIgnore+"="+rules)
	}
	return grant.Grant{Mounts: []grant.Mount{{Host: workspace, Kind: kind}}, Env: env}
}

// grant returns what a call of a mode may see and use.
func (ts *Tools) grant(mode permission.Mode, m toolabi.Manifest) grant.Grant {
	g := workspaceGrant(ts.opts.Workspace, mode)
	g.Limits = sandbox.LimitsFor(m, ts.opts.Limits)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, dir := range ts.readable {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			g.Mounts = append(g.Mounts, grant.Mount{Host: dir, Kind: grant.ReadOnly})
		}
	}
	return g
}

// module is one tool.
type module struct {
	tools     *Tools
	manifest  toolabi.Manifest
	access    permission.Access
	recursive bool
}

// Spec implements tool.Tool.
func (m *module) Spec() tool.Spec {
	return tool.Spec{Name: m.manifest.Name, Description: m.manifest.Description, Parameters: m.manifest.Parameters, Access: m.access}
}

// Request implements tool.Tool. The path counts as it is written and, where it leads through symbolic links, also as what it
// leads to: a rule about a folder must not be passed by a link beside it.
func (m *module) Request(call tool.Call) (permission.Request, error) {
	var in struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return permission.Request{}, fmt.Errorf("read arguments: %w", err)
	}
	ws := m.tools.opts.Workspace
	abs := in.Path
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(ws, abs)
	}
	abs = filepath.Clean(abs)
	r := permission.Request{Access: m.access, Recursive: m.recursive, Paths: []string{below(ws, abs)}}
	if real := resolve(abs); real != abs {
		r.Paths = append(r.Paths, below(ws, real))
	}
	return r, nil
}

// below returns path relative to ws with slashes. What lies outside begins with "..": no rule matches it by accident, and no
// mount shows it.
func below(ws, path string) string {
	rel, err := filepath.Rel(ws, path)
	if err != nil {
		return "../" + filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// resolve follows symbolic links as far as the path exists.
func resolve(path string) string {
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if p == filepath.Dir(p) {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

// Run implements tool.Tool.
func (m *module) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	mod, err := m.tools.module(ctx, m.manifest)
	if err != nil {
		return tool.Result{}, err
	}
	res, err := mod.Run(ctx, sandbox.Call{
		Argv:  []string{m.manifest.Name},
		Stdin: call.Input,
		Grant: m.tools.grant(call.Mode, m.manifest),
	})
	if res == nil {
		if err == nil {
			panic("BUG: sandbox run without result and error")
		}
		if ctx.Err() != nil || errors.Is(err, sandbox.ErrUnavailable) || errors.Is(err, sandbox.ErrNotGranted) {
			return tool.Result{}, unavailable(ctx, err)
		}
		return tool.Result{}, err
	}
	out := tool.Result{Diff: diff(m.tools.opts.Workspace, res)}
	if ctx.Err() != nil {
		// What it changed until then is still shown.
		out.IsError, out.Output = true, "cancelled by the user; it may have taken effect partly"
		return out, nil
	}
	out.Output, out.IsError = output(res, err)
	return out, nil
}

// output returns the text for the model.
func output(res *sandbox.Result, err error) (text string, isError bool) {
	text = string(res.Stdout)
	if res.Truncated {
		text = wholeText(text) + "\n[the output was cut here: it is longer than the limit]"
	}
	if err == nil && res.ExitCode == toolabi.ExitOK {
		return text, false
	}
	reason := strings.TrimSpace(string(res.Stderr))
	var limit *sandbox.LimitError
	switch {
	case errors.As(err, &limit):
		reason = join(reason, fmt.Sprintf("stopped by the limit %s (%s)", limit.Which, limit.Limit))
	case err != nil:
		reason = join(reason, err.Error())
	case res.Limit != "":
		reason = join(reason, "limit reached: "+res.Limit)
	}
	if reason == "" {
		reason = fmt.Sprintf("the tool ended with code %d and no message", res.ExitCode)
	}
	return join(strings.TrimSpace(text), reason), true
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// wholeText drops a character that was cut at the end.
func wholeText(s string) string {
	for i := 1; i <= utf8.UTFMax && i <= len(s); i++ {
		if c := s[len(s)-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(s[len(s)-i:]) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}
