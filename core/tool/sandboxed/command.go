package sandboxed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atoll/core/permission"
	"atoll/core/tool"
	"atoll/sandbox"
	"atoll/sandbox/grant"
	"atoll/sandbox/mount"
	"atoll/sandbox/toolabi"
	"atoll/sandbox/toolset"
)

// maxModule is the largest module file in bytes that is read.
const maxModule = 256 << 20

// Command is one call made by hand, without an agent: `atoll tool run`. What
// the module gets is the workspace as the mode says, and what is named here.
type Command struct {
	// Name is a built-in tool. Empty: Module and Manifest are files of a module
	// that did not come with atoll. An empty Manifest is looked for in the module,
	// then beside it.
	Name             string
	Module, Manifest string
	// OneWall accepts that such a module runs in this process.
	OneWall bool

	Mode      permission.Mode
	Workspace string // absolute, without symbolic links
	// Args is the tool's standard input: its arguments, a JSON object.
	Args []byte
	// Mounts are further folders, KIND:DIR with the kind ro or rw.
	Mounts []string
	// Grants are capabilities that the manifest may ask for, in its spelling.
	Grants []string
	// Environ is the environment that an env: grant takes its values from.
	Environ []string
	// Wall and Memory replace the manifest's limits. Zero: the manifest's.
	Wall   time.Duration
	Memory int64 // bytes

	CacheDir string
	Private  []string // as in Options
	// OnStdout and OnStderr get the output while it is written. They may be nil.
	OnStdout, OnStderr func([]byte)
}

// Outcome is what a Command left.
type Outcome struct {
	Stdout     []byte        `json:"-"`
	Stderr     []byte        `json:"-"`
	ExitCode   int           `json:"exit_code"` // the module's own; -1: it did not end by itself
	Truncated  bool          `json:"truncated"` // output was dropped
	Limit      string        `json:"limit,omitempty"`
	Error      string        `json:"error,omitempty"` // the trap or limit that ended it
	Written    int64         `json:"written_bytes"`
	Duration   time.Duration `json:"-"`
	DurationMS int64         `json:"duration_ms"`
	Changed    []string      `json:"changed"` // host paths
	Audit      []mount.Event `json:"audit"`
	AuditCut   bool          `json:"audit_cut,omitempty"`
	Diff       string        `json:"-"`
	CacheError error         `json:"-"` // why compiled code is not kept in CacheDir
}

// OK reports whether the tool succeeded.
func (o *Outcome) OK() bool { return o.ExitCode == toolabi.ExitOK && o.Error == "" }

// ErrCommand marks a Command that makes no sense: an unknown tool, a bad
// manifest or module, a bad mount or limit. Nothing ran.
var ErrCommand = errors.New("cannot run the tool")

// Run makes the call. A tool that ran and failed is an Outcome, not an error.
// Errors are an ErrCommand, a tool.ErrUnavailable (also when the module asks for
// what was not granted), or ctx's.
func (c Command) Run(ctx context.Context) (*Outcome, error) {
	wasm, argv0, manifest, trust, err := c.module()
	if err != nil {
		return nil, err
	}
	g, err := c.grant(manifest)
	if err != nil {
		return nil, err
	}
	rt, err := sandbox.New(ctx, sandbox.Options{CacheDir: c.CacheDir, Private: c.Private})
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	defer rt.Close(context.WithoutCancel(ctx))
	mod, err := rt.Load(ctx, wasm, manifest, trust)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	res, err := mod.Run(ctx, sandbox.Call{Argv: []string{argv0}, Stdin: c.Args, Grant: g, OnStdout: c.OnStdout, OnStderr: c.OnStderr})
	if res == nil {
		return nil, c.failed(ctx, err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out := &Outcome{
		Stdout: res.Stdout, Stderr: res.Stderr, ExitCode: res.ExitCode, Truncated: res.Truncated, Limit: res.Limit,
		Written: res.Written, Duration: res.Duration, DurationMS: res.Duration.Milliseconds(),
		Audit: res.Audit, AuditCut: res.AuditCut, Diff: diff(c.Workspace, res), Changed: []string{}, CacheError: rt.CacheError(),
	}
	if out.Audit == nil {
		out.Audit = []mount.Event{}
	}
	for _, ch := range res.Changes {
		out.Changed = append(out.Changed, ch.Path)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out, nil
}

func (c Command) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch {
	case errors.Is(err, sandbox.ErrUnavailable), errors.Is(err, sandbox.ErrNotGranted):
		return fmt.Errorf("%w: %w", tool.ErrUnavailable, err)
	case errors.Is(err, sandbox.ErrModule):
		return fmt.Errorf("%w: %w", ErrCommand, err)
	}
	return fmt.Errorf("run tool: %w", err)
}

// module returns the module's bytes and how it is to be called.
func (c Command) module() (wasm []byte, argv0 string, m toolabi.Manifest, t sandbox.Trust, err error) {
	if c.Name != "" {
		wasm, argv0, m, err = toolset.Load(c.Name)
		switch {
		case errors.Is(err, toolset.ErrUnknown):
			err = fmt.Errorf("%w: %w", ErrCommand, err)
		case err != nil:
			err = fmt.Errorf("%w: %w", tool.ErrUnavailable, err)
		}
		return wasm, argv0, m, sandbox.Builtin(), err
	}
	wasm, err = readFile(c.Module, maxModule)
	if err != nil {
		return nil, "", m, t, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	m, err = c.manifest(wasm)
	if err != nil {
		return nil, "", m, t, fmt.Errorf("%w: manifest: %w", ErrCommand, err)
	}
	return wasm, m.Name, m, sandbox.ThirdParty(c.OneWall), nil
}

func (c Command) manifest(wasm []byte) (toolabi.Manifest, error) {
	path := c.Manifest
	if path == "" {
		m, err := toolabi.ManifestOf(wasm)
		if !errors.Is(err, toolabi.ErrNoManifest) {
			return m, err
		}
		path = strings.TrimSuffix(c.Module, ".wasm") + ".json"
	}
	data, err := readFile(path, 1<<20)
	if err != nil {
		return toolabi.Manifest{}, err
	}
	m, err := toolabi.ParseManifest(data)
	if err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// readFile reads a regular file of at most n bytes.
func readFile(path string, n int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, n+1))
	if err == nil && int64(len(b)) > n {
		err = fmt.Errorf("%s is larger than %d bytes", path, n)
	}
	return b, err
}

// grant puts together what the call may see. A capability of the manifest that
// was not granted is an error before anything runs.
func (c Command) grant(m toolabi.Manifest) (grant.Grant, error) {
	g := workspaceGrant(c.Workspace, c.Mode)
	for _, text := range c.Mounts {
		k, dir, ok := strings.Cut(text, ":")
		kind, err := grant.ParseKind(k)
		if !ok || err != nil || dir == "" {
			return g, fmt.Errorf("%w: mount %q: want ro:DIR or rw:DIR", ErrCommand, text)
		}
		if dir, err = filepath.Abs(dir); err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return g, fmt.Errorf("%w: mount %q: %w", ErrCommand, text, err)
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return g, fmt.Errorf("%w: mount %q: not a directory", ErrCommand, text)
		}
		g.Mounts = append(g.Mounts, grant.Mount{Host: dir, Kind: kind})
	}
	granted := map[string]bool{}
	for _, text := range c.Grants {
		cp, err := toolabi.ParseCapability(text)
		if err != nil {
			return g, fmt.Errorf("%w: grant %q: %w", ErrCommand, text, err)
		}
		switch cp.Kind {
		case toolabi.Clock:
			g.Clock = true
		case toolabi.Random:
			g.Random = true
		case toolabi.Env:
			for _, kv := range c.Environ {
				if strings.HasPrefix(kv, cp.Value+"=") && cp.Value != toolabi.EnvWorkspace && cp.Value != toolabi.EnvIgnore {
					g.Env = append(g.Env, kv)
				}
			}
		default:
			return g, fmt.Errorf("%w: grant %q: not supported; folders are granted as mounts, programs and hosts not yet", ErrCommand, text)
		}
		granted[cp.String()] = true
	}
	for _, text := range m.Capabilities {
		cp, err := toolabi.ParseCapability(text)
		if err != nil {
			return g, fmt.Errorf("%w: manifest: %w", ErrCommand, err)
		}
		if !granted[cp.String()] && !mounted(g, cp) {
			return g, fmt.Errorf("%w: %w: %s asks for %s", tool.ErrUnavailable, sandbox.ErrNotGranted, m.Name, cp)
		}
	}
	g.Limits = sandbox.LimitsFor(m, grant.Limits{})
	if c.Wall > 0 {
		g.Limits.Wall = c.Wall
	}
	if c.Memory > 0 {
		pages := c.Memory / (64 << 10)
		if pages < 1 || pages > math.MaxUint16+1 {
			return g, fmt.Errorf("%w: memory of %d bytes: between 64 KiB and 4 GiB", ErrCommand, c.Memory)
		}
		g.Limits.MemoryPages = uint32(pages)
	}
	if err := g.Validate(); err != nil {
		return g, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	return g, nil
}

// mounted reports whether a mount gives the folder that a capability asks for.
func mounted(g grant.Grant, cp toolabi.Capability) bool {
	want := grant.ReadOnly
	switch cp.Kind {
	case toolabi.DirRead:
	case toolabi.DirWrite:
		want = grant.ReadWrite
	default:
		return false
	}
	dir, err := filepath.EvalSymlinks(cp.Value)
	if err != nil || !filepath.IsAbs(dir) {
		return false
	}
	inner := grant.Grant{Mounts: []grant.Mount{{Host: dir, Kind: want}}}
	return g.Contains(inner)
}
