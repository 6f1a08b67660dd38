package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	wasys "github.com/tetratelabs/wazero/sys"

	"atoll/sandbox/grant"
	"atoll/sandbox/mount"
	"atoll/sandbox/toolabi"
)

// Call is one run of a module.
type Call struct {
	// Argv are the guest's arguments; Argv[0] is the tool's name. Empty means the name in the manifest alone.
	Argv []string
	// Stdin is all of the guest's standard input, the arguments of a tool as JSON.
	Stdin []byte
	// Grant is everything that the guest may see and use. Zero limits mean the defaults.
	Grant grant.Grant
	// OnStdout and OnStderr get what the guest writes while it runs, as far as it is kept. They are called from one
	// goroutine at a time and must neither keep the bytes nor block.
	OnStdout, OnStderr func([]byte)
}

// Result is what a call left.
type Result struct {
	Stdout, Stderr []byte
	// ExitCode is what the guest gave, whole: 256 is 256 and a failure. It is -1 when the guest did not end by itself.
	ExitCode int
	// Truncated and StderrTruncated say that output was dropped because of a limit.
	Truncated, StderrTruncated bool
	// Limit names the limit that ended the call, or that refused something to a guest which then failed: "wall",
	// "memory_pages", "open_files", "written_bytes", "files". Empty for none.
	Limit string
	// Changes are the paths that the guest changed, told by the mounts. ChangesCut says that there were more.
	Changes    []mount.Change
	ChangesCut bool
	// Audit is what the guest opened and what it was refused. AuditCut says that there was more.
	Audit    []mount.Event
	AuditCut bool
	// Written are the bytes that the guest wrote to files.
	Written  int64
	Duration time.Duration
}

// Run runs the module once. When the guest started, the result is never nil, whatever the error: a *LimitError, a
// *TrapError, or the end of ctx. A guest that ends with a code other than 0 is no error here.
func (m *Module) Run(ctx context.Context, in Call) (*Result, error) {
	if err := in.Grant.Validate(); err != nil {
		return nil, fmt.Errorf("run tool %s: grant: %w", m.manifest.Name, err)
	}
	limits := in.Grant.Limits.OrDefaults()
	if pages := m.code.info.memoryMin; pages > limits.MemoryPages {
		return nil, &LimitError{Which: "memory_pages", Limit: fmt.Sprintf("%d pages (the module starts with %d)", limits.MemoryPages, pages)}
	}
	started := time.Now()
	run := &runState{
		call: &call{
			argv:   in.Argv,
			env:    in.Grant.Env,
			stdin:  bytes.NewReader(in.Stdin),
			stdout: &capture{limit: limits.OutputBytes, live: in.OnStdout},
			stderr: &capture{limit: limits.StderrBytes, live: in.OnStderr},
			limits: limits,
			clock:  clock{real: in.Grant.Clock, started: started},
			random: newRandom(in.Grant.Random),
		},
		memory: &allocator{limit: uint64(limits.MemoryPages) * pageBytes},
		quota:  mount.NewQuota(limits.WrittenBytes, limits.Files),
	}
	if len(run.call.argv) == 0 {
		run.call.argv = []string{m.manifest.Name}
	}
	defer run.close()
	if err := run.open(in.Grant.Mounts, m.rt.private); err != nil {
		return nil, fmt.Errorf("run tool %s: %w", m.manifest.Name, err)
	}
	err := run.guest(ctx, m.code)
	res := run.result(err)
	res.Duration = time.Since(started)
	return res, err
}

// runState is everything that lives as long as one call.
type runState struct {
	call    *call
	memory  *allocator
	quota   *mount.Quota
	journal mount.Journal
	audit   mount.Audit
	wall    bool
}

// open makes the mounts and the first descriptors: 0, 1 and 2, then one for each mount.
func (r *runState) open(mounts []grant.Mount, private []string) error {
	c := r.call
	for _, s := range []*stream{{in: c.stdin}, {out: c.stdout}, {out: c.stderr}} {
		rights := uint64(stdioRights &^ rightFdWrite)
		if s.out != nil {
			rights = stdioRights &^ rightFdRead
		}
		c.files = append(c.files, &desc{stream: s, base: rights})
	}
	for _, m := range mounts {
		o := mount.Options{Mount: m, Quota: r.quota, Audit: &r.audit, Private: private}
		if m.Kind == grant.ReadWrite {
			o.Journal = &r.journal
		}
		f, err := mount.New(o)
		if err != nil {
			return err
		}
		c.mounts = append(c.mounts, f)
		c.files = append(c.files, &desc{dir: f, preopen: f.Guest(), base: dirRights, inherit: dirRights | fileRights})
	}
	c.open = len(c.files)
	return nil
}

func (r *runState) close() {
	for _, d := range r.call.files {
		if d != nil {
			d.close()
		}
	}
	for _, f := range r.call.mounts {
		f.Close()
	}
	r.memory.release()
}

// guest runs the module to its end. The error is nil when the guest ended by itself.
func (r *runState) guest(ctx context.Context, code *compiled) (err error) {
	c := r.call
	wall := c.limits.Wall
	inner, cancel := context.WithTimeout(ctx, wall)
	defer cancel()
	c.ctx = inner
	defer context.AfterFunc(inner, func() { c.ended.Store(true) })()
	inner = context.WithValue(inner, callKey{}, c)
	inner = experimental.WithMemoryAllocator(inner, r.memory)

	err = r.enter(inner, code)
	if c.exited || err == nil {
		return nil
	}
	if parent := ctx.Err(); parent != nil {
		return fmt.Errorf("run tool: %w", context.Cause(ctx))
	}
	if inner.Err() != nil {
		r.wall = true
		return &LimitError{Which: "wall", Limit: wall.String()}
	}
	return err
}

// enter instantiates and calls _start.
func (r *runState) enter(ctx context.Context, code *compiled) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if r.memory.err == nil {
			panic(p)
		}
		// The engine has no other way to hear that there is no memory to start with.
		err = fmt.Errorf("%w: %w", ErrUnavailable, r.memory.err)
	}()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	guest, err := code.engine.InstantiateModule(ctx, code.module, config)
	if err != nil {
		return trapOf(err)
	}
	defer guest.Close(context.WithoutCancel(ctx))
	start := guest.ExportedFunction("_start")
	if def := start.Definition(); len(def.ParamTypes()) > 0 || len(def.ResultTypes()) > 0 {
		return fmt.Errorf("%w: _start takes or returns values", ErrModule)
	}
	if _, err := start.Call(ctx); err != nil {
		return trapOf(err)
	}
	return nil
}

// trapOf makes a typed error of what the engine returns.
func trapOf(err error) error {
	var exit *wasys.ExitError
	if errors.As(err, &exit) {
		return err
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	reason = strings.TrimPrefix(reason, "wasm error: ")
	return &TrapError{Reason: reason, Err: err}
}

// result collects what the call left. err is what guest returned.
func (r *runState) result(err error) *Result {
	c := r.call
	res := &Result{
		Stdout: c.stdout.buf, Truncated: c.stdout.dropped,
		Stderr: c.stderr.buf, StderrTruncated: c.stderr.dropped,
		ExitCode: -1, Written: r.quota.Written(),
	}
	if err == nil {
		res.ExitCode = int(c.exit)
	}
	switch {
	case r.wall:
		res.Limit = "wall"
	case err == nil && c.exit == 0:
	case r.memory.refused:
		res.Limit = "memory_pages"
	case c.hitOpen:
		res.Limit = "open_files"
	default:
		res.Limit = r.quota.Hit()
	}
	res.Changes, res.ChangesCut = r.journal.Changes()
	res.Audit, res.AuditCut = r.audit.Events()
	return res
}

// LimitsFor returns the limits of a call: what the manifest asks for, the default where it asks for nothing, and never
// more than the user's maximum. A zero field of most is the default.
func LimitsFor(m toolabi.Manifest, most grant.Limits) grant.Limits {
	l, d := m.Limits, grant.Defaults()
	most = most.OrDefaults()
	return grant.Limits{
		Wall:         pick(time.Duration(l.WallMS)*time.Millisecond, d.Wall, most.Wall),
		MemoryPages:  pick(uint32(l.MemoryPages), d.MemoryPages, most.MemoryPages),
		OutputBytes:  pick(l.OutputBytes, d.OutputBytes, most.OutputBytes),
		StderrBytes:  min(d.StderrBytes, most.StderrBytes),
		WrittenBytes: pick(l.WrittenBytes, d.WrittenBytes, most.WrittenBytes),
		OpenFiles:    pick(int(l.OpenFiles), d.OpenFiles, most.OpenFiles),
		Files:        pick(int(l.Files), d.Files, most.Files),
	}
}

func pick[T int | int64 | uint32 | time.Duration](asked, standard, most T) T {
	if asked == 0 {
		asked = standard
	}
	return min(asked, most)
}
