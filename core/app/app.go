// Package app is the composition root: it turns a front end's options into a service. Below it nothing reads the environment,
// flags or settings files.
package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"atoll/core/config"
	"atoll/core/llm"
	"atoll/core/permission"
	"atoll/core/prompt"
	"atoll/core/service"
	"atoll/core/session"
	"atoll/core/tool"
	"atoll/core/tool/sandboxed"
)

// Options are what a front end decides, from flags and environment. Zero values are taken from the user's settings file, then
// from the defaults named here.
type Options struct {
	// Workspace is the folder to work in; empty means the current one.
	Workspace string
	// DataDir holds sessions and models, CacheDir compiled tools, ConfigDir the user's settings. Dirs finds them. DataDir is
	// required; without CacheDir nothing is cached, without ConfigDir there are no settings.
	DataDir, CacheDir, ConfigDir string
	// ModelsDir holds model files; empty means DataDir/models.
	ModelsDir string
	// Model is script:FILE, the path of a GGUF file, or a name of the models directory; empty means the default model.
	Model string
	// Mode is a mode's name; empty means read-only, and for a session that is opened again the mode it had.
	Mode string
	// Ctx is the model's window in tokens; 0 means the model's own, up to a sensible size.
	Ctx int
	// Threads is the number of workers of the engine; 0 means one for each core.
	Threads int
	// CPU forces a kernel tier (generic, avx2, avx512vnni); empty chooses.
	CPU string
	// MaxSteps limits the model steps of a turn; 0 means agent.DefaultMaxSteps.
	MaxSteps int
	// MaxTokens limits the output of one step; 0 means agent.DefaultMaxTokens.
	MaxTokens int
	Sampling  llm.Sampling
	// NoNudge turns agent.Options.Nudge off, which is on for models of weights.
	NoNudge bool
	// Interactive says that the front end answers permission requests.
	Interactive bool
	// OnLoad is called while a model loads, with bytes done and to do; nil means nobody listens.
	OnLoad func(done, total int64)
}

// Open returns the service of a workspace. No model is loaded before it is needed, and nothing is written.
func Open(o Options) (*service.Service, error) {
	ws, err := workspace(o.Workspace)
	if err != nil {
		return nil, err
	}
	if o.DataDir == "" {
		return nil, errors.New("no data directory")
	}
	rules, err := o.settings()
	if err != nil {
		return nil, err
	}
	var mode permission.Mode
	if o.Mode != "" {
		if mode, err = service.ParseMode(o.Mode); err != nil {
			return nil, err
		}
	}
	if o.Ctx < 0 || o.Threads < 0 || o.MaxSteps < 0 || o.MaxTokens < 0 {
		return nil, service.Usage("ctx, threads, steps and tokens cannot be negative")
	}
	if o.ModelsDir == "" {
		o.ModelsDir = filepath.Join(o.DataDir, "models")
	}
	t := &toolbox{opts: toolOptions(o, ws)}
	return service.New(service.Options{
		Home:        session.NewHome(session.Options{Dir: o.DataDir}),
		Workspace:   ws,
		Mode:        mode,
		UserRules:   rules,
		Interactive: o.Interactive,
		OpenModel:   func(ctx context.Context) (llm.Model, error) { return openModel(ctx, o) },
		Tools:       t.registry,
		System: func(canWrite bool) (string, []string, error) {
			return system(ws, canWrite)
		},
		View:     view,
		MaxSteps: o.MaxSteps, MaxTokens: o.MaxTokens, Sampling: o.Sampling,
		Nudge: !o.NoNudge && !strings.HasPrefix(o.Model, scriptPrefix),
		Close: t.close,
	}), nil
}

// workspace returns the absolute path without symbolic links.
func workspace(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", service.Usage("workspace %s: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", service.Usage("workspace %s does not exist", abs)
	}
	if err != nil {
		return "", service.Usage("workspace %s: %w", abs, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", service.Usage("workspace %s: %w", abs, err)
	}
	if !info.IsDir() {
		return "", service.Usage("workspace %s is not a directory", abs)
	}
	return real, nil
}

// CheckSettings reads the user's settings as Open does and returns what is wrong with them. A file that is not there is fine.
func CheckSettings(configDir string) error {
	_, err := (&Options{ConfigDir: configDir}).settings()
	return err
}

// settings fills the options that are not set from the user's settings file, and returns its rules.
func (o *Options) settings() ([]permission.Rule, error) {
	if o.ConfigDir == "" {
		return nil, nil
	}
	s, err := config.Load(filepath.Join(o.ConfigDir, "config.jsonc"))
	if err != nil {
		return nil, &service.Error{Code: service.ExitUsage, Err: err}
	}
	if o.Model == "" {
		o.Model = s.Model
	}
	if o.Mode == "" {
		o.Mode = s.Mode
	}
	if o.Ctx == 0 {
		o.Ctx = s.Ctx
	}
	if o.Threads == 0 {
		o.Threads = s.Threads
	}
	var rules []permission.Rule
	for _, r := range s.Permissions {
		rule := permission.Rule{Tool: r.Tool, Path: r.Path, Command: r.Command, Action: permission.Action(r.Action)}
		if err := rule.Check(); err != nil {
			return nil, service.Usage("%s: %w", r.Place, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// system assembles the system prompt of a workspace.
func system(ws string, canWrite bool) (text string, notices []string, err error) {
	in, err := prompt.LoadInstructions(ws)
	if err != nil {
		// A file that cannot be read must not keep the user from working; that it was left out is said.
		notices = append(notices, err.Error())
	}
	if n := in.Notice(); n != "" {
		notices = append(notices, n)
	}
	if _, err := os.Lstat(filepath.Join(ws, ".atoll", "config.jsonc")); err == nil {
		notices = append(notices, ".atoll/config.jsonc of this project is ignored: trust in projects is not supported yet")
	}
	return prompt.Build(prompt.Options{OS: runtime.GOOS, CanWrite: canWrite, Instructions: in}), notices, nil
}

// ModesFile is where a front end may remember, in DataDir, the modes that the user gave to workspaces. No tool sees it.
const ModesFile = "modes.json"

// private returns what no tool may see or change: what atoll itself obeys.
func private(o Options) []string {
	paths := []string{filepath.Join(o.DataDir, "sessions"), filepath.Join(o.DataDir, ModesFile), o.ModelsDir}
	if o.ConfigDir != "" {
		paths = append(paths, o.ConfigDir)
	}
	return paths
}

func toolOptions(o Options, ws string) sandboxed.Options {
	return sandboxed.Options{Workspace: ws, CacheDir: cacheDir(o.CacheDir), Private: private(o)}
}

func cacheDir(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "wasm")
}

// toolbox makes the registry of each session out of one set of tools.
type toolbox struct {
	opts  sandboxed.Options
	tools *sandboxed.Tools
}

// registry returns the tools of one session. The service calls it for one session at a time.
func (t *toolbox) registry(spill string) (*tool.Registry, error) {
	if t.tools == nil {
		ts, err := sandboxed.New(t.opts)
		if err != nil {
			return nil, err
		}
		t.tools = ts
	}
	t.tools.AddReadable(spill)
	reg, err := tool.NewRegistry(t.tools.List()...)
	if err != nil {
		return nil, fmt.Errorf("load tools: %w", err)
	}
	return reg, nil
}

func (t *toolbox) close() error {
	if t.tools == nil {
		return nil
	}
	return t.tools.Close()
}
