// Package sandbox runs tools as WebAssembly modules that see only what they were granted.
//
// A Runtime compiles modules and runs them. Each call of Module.Run is a fresh instance with its own memory, files,
// clock and random numbers, which share nothing with other calls. WASI preview 1 is implemented here, over the mounts
// of package mount, and not taken from the engine, whose directories do not confine and whose sleeps no deadline ends.
//
// What a call can be relied upon to do: it ends when its wall time or its context ends, wherever the guest is (in a
// loop, in calls without a loop, asleep, in a host function); it never holds more memory, output, descriptors or
// written bytes than its limits; and it opens no socket, no device and no path outside of its mounts. What the engine
// itself guarantees, that compiled code stays in its memory, is trusted for modules that come with atoll. A module of
// someone else needs a second wall, see Trust.
//
// A Runtime and its Modules are safe for concurrent use.
package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"atoll/sandbox/toolabi"
)

// Options configure a Runtime.
type Options struct {
	// CacheDir keeps compiled code between runs; it is made when missing. Empty means no cache on disk. A directory
	// that cannot be used, or that others may write, is not used: see CacheError.
	CacheDir string
	// Private are host paths that no mount ever shows, even when it contains them: what the program later executes
	// or obeys, such as its settings and its sessions. CacheDir is always private.
	Private []string
}

// Trust says where a module comes from.
type Trust struct {
	thirdParty, oneWall bool
}

// Builtin is the trust in a module that was built together with this program.
func Builtin() Trust { return Trust{} }

// ThirdParty is the trust in any other module. It needs a worker process that the operating system confines, as a
// second wall, which this version does not have. With oneWall the user accepts to run it without: in this process,
// after a bounded check of its binary, with the time limit made to hold in all of its code.
func ThirdParty(oneWall bool) Trust { return Trust{thirdParty: true, oneWall: oneWall} }

// Runtime compiles and runs modules.
type Runtime struct {
	private  []string
	cacheErr error

	mu     sync.Mutex // guards what follows; held while a module is compiled, never while one runs
	engine wazero.Runtime
	cache  wazero.CompilationCache
	onDisk bool
	loaded map[moduleKey]*compiled
	old    []func(context.Context) error // what Close has to close beside engine
	stuck  bool                          // a compilation was left behind; it still uses engine and cache
	closed bool
}

type moduleKey struct {
	sum   [sha256.Size]byte
	trust Trust
}

type compiled struct {
	engine wazero.Runtime
	module wazero.CompiledModule
	info   *moduleInfo
}

// New makes a Runtime. The caller closes it after the last Run has returned.
func New(ctx context.Context, o Options) (*Runtime, error) {
	r := &Runtime{loaded: make(map[moduleKey]*compiled), private: append([]string(nil), o.Private...)}
	if o.CacheDir != "" {
		dir, err := filepath.Abs(o.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("cache directory: %w", err)
		}
		r.private = append(r.private, dir)
		if r.cacheErr = prepareCache(dir); r.cacheErr == nil {
			if r.cache, r.cacheErr = wazero.NewCompilationCacheWithDir(dir); r.cacheErr == nil {
				r.onDisk = true
			}
		}
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// prepareCache makes the directory and checks that nobody else can put code into it: what lies there is executed.
func prepareCache(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cache of compiled modules: %w", err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cache of compiled modules: %w", err)
	}
	if st.Mode().Perm()&0o022 != 0 || !ownedByUs(st) {
		return fmt.Errorf("cache of compiled modules: others may write to %s", dir)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("cache of compiled modules: %w", err)
	}
	probe.Close()
	if err := os.Remove(probe.Name()); err != nil {
		return fmt.Errorf("cache of compiled modules: %w", err)
	}
	return nil
}

// start makes the engine, with the cache if there is one.
func (r *Runtime) start(ctx context.Context) error {
	if r.cache == nil {
		r.cache = wazero.NewCompilationCache()
	}
	config := wazero.NewRuntimeConfig().WithCompilationCache(r.cache).WithCloseOnContextDone(true).WithDebugInfoEnabled(false)
	r.engine = wazero.NewRuntimeWithConfig(ctx, config)
	if err := instantiateWASI(ctx, r.engine); err != nil {
		return fmt.Errorf("%w: link WASI: %w", ErrUnavailable, err)
	}
	return nil
}

// CacheError says why compiled code is not kept on disk, nil when it is or was not asked for.
func (r *Runtime) CacheError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cacheErr
}

// Close releases compiled code.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if r.stuck {
		return nil
	}
	errs := []error{r.engine.Close(ctx), r.cache.Close(ctx)}
	for _, c := range r.old {
		errs = append(errs, c(ctx))
	}
	return errors.Join(errs...)
}

// Module is a compiled module together with the manifest that describes one tool in it.
type Module struct {
	rt       *Runtime
	code     *compiled
	manifest toolabi.Manifest
}

// Manifest describes the tool.
func (m *Module) Manifest() toolabi.Manifest { return m.manifest }

// Load checks and compiles a module. Loading the same bytes again is cheap. The errors are ErrUnavailable (also for a
// module of a third party that may not run), ErrNotGranted and ErrModule.
func (r *Runtime) Load(ctx context.Context, wasm []byte, manifest toolabi.Manifest, trust Trust) (*Module, error) {
	if err := manifest.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	if trust.thirdParty && !trust.oneWall {
		return nil, errNoWorker
	}
	key := moduleKey{sha256.Sum256(wasm), trust}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, fmt.Errorf("%w: the runtime is closed", ErrUnavailable)
	}
	code := r.loaded[key]
	if code == nil {
		var err error
		if code, err = r.compile(ctx, wasm, trust); err != nil {
			return nil, fmt.Errorf("load tool %s: %w", manifest.Name, err)
		}
		r.loaded[key] = code
	}
	return &Module{rt: r, code: code, manifest: manifest}, nil
}

func (r *Runtime) compile(ctx context.Context, wasm []byte, trust Trust) (*compiled, error) {
	caps := builtinCaps
	if trust.thirdParty {
		caps = thirdPartyCaps
	}
	info, wasm, err := checkBinary(wasm, caps, trust.thirdParty)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	for _, i := range info.imports {
		if i.module != wasiModule || i.kind != "function" || !wasiNames()[i.name] {
			return nil, &NotGrantedError{Module: i.module, Name: i.name, Kind: i.kind}
		}
	}
	if !info.command {
		return nil, fmt.Errorf("%w: it exports no function _start, so it is not a command", ErrModule)
	}
	code, err := r.compileWithin(ctx, wasm, trust)
	if err != nil && r.onDisk && !r.stuck {
		// The disk may be full or the cache unreadable: that must not cost the tool.
		if again := r.withoutDisk(ctx); again != nil {
			return nil, again
		}
		first := err
		if code, err = r.compileWithin(ctx, wasm, trust); err == nil {
			r.cacheErr = fmt.Errorf("cache of compiled modules: %w", first)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModule, err)
	}
	return &compiled{engine: r.engine, module: code, info: info}, nil
}

// compileTime is what compiling a module of a third party may take. A large one takes seconds, but the compiler is
// quadratic in what one function can hold: nested blocks, branches, locals that change in loops.
const compileTime = 60 * time.Second

// compileWithin compiles until ctx ends. The compiler does not look at ctx within a function: it is left behind, and
// with it the engine that it works on.
func (r *Runtime) compileWithin(ctx context.Context, wasm []byte, trust Trust) (wazero.CompiledModule, error) {
	workers := runtime.GOMAXPROCS(0)
	if trust.thirdParty {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, compileTime, fmt.Errorf("compiling it takes more than %v", compileTime))
		defer cancel()
		workers = 1 // a panic in one of several could not be caught
	}
	type result struct {
		code wazero.CompiledModule
		err  error
	}
	done, engine := make(chan result, 1), r.engine
	go func() {
		code, err := compileWith(experimental.WithCompilationWorkers(ctx, workers), engine, wasm)
		done <- result{code, err}
	}()
	select {
	case res := <-done:
		return res.code, res.err
	case <-ctx.Done():
		r.stuck = true
		return nil, context.Cause(ctx)
	}
}

// withoutDisk changes to an engine whose cache is in memory. Modules that are compiled stay usable.
func (r *Runtime) withoutDisk(ctx context.Context) error {
	r.old = append(r.old, r.engine.Close, r.cache.Close)
	r.cache, r.onDisk = nil, false
	return r.start(ctx)
}

// compileWith turns a panic of the compiler into an error: the module made it do that.
func compileWith(ctx context.Context, engine wazero.Runtime, wasm []byte) (code wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("compile: %v", p)
		}
	}()
	return engine.CompileModule(ctx, wasm)
}
