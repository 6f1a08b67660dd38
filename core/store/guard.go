package store

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard stands between pebble and the process. pebble treats a failed write of its log or manifest as fatal and expects the
// process to end; a failed flush it retries for ever. The guard turns both into an error of the store: the first fatal error
// is kept, every call that waits for pebble returns it, and the goroutine that met it is parked, so that pebble cannot go on
// with a state it declared broken. A write error is caught in the file system, before pebble sees it.
type guard struct {
	inner vfs.FS
	dead  chan struct{} // closed when cause is set

	mu     sync.Mutex // guards the fields below and values handed over by own
	cause  error
	sealed bool
	lock   *heldLock
}

func newGuard(inner vfs.FS) *guard { return &guard{inner: inner, dead: make(chan struct{})} }

func (g *guard) fs() vfs.FS { return &guardFS{FS: g.inner, g: g} }

// err returns the fatal error, or nil.
func (g *guard) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}

// kill records the first fatal error.
func (g *guard) kill(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause == nil {
		g.cause = classify(err)
		close(g.dead)
	}
}

// seal makes the file system refuse writes from now on, also without an error, and releases the lock. A goroutine of pebble
// that was left behind cannot touch files that another process may own by then.
func (g *guard) seal() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sealed = true
	if g.lock == nil {
		return nil
	}
	return g.lock.Close()
}

// own runs fn under the guard's lock unless the guard is dead: a value that arrives after the caller gave up is dropped.
func (g *guard) own(fn func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause == nil {
		fn()
	}
}

// do runs fn on a goroutine of its own and waits for its end or for a fatal error, whichever is first. A panic of pebble is an
// error here: a damaged file must not end the process.
func (g *guard) do(fn func() error) error {
	if err := g.err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				err := fmt.Errorf("%w: %v", ErrDamaged, r)
				g.kill(err)
				done <- err
			}
		}()
		done <- fn()
	}()
	select {
	case err := <-done:
		if cause := g.err(); err == nil && cause != nil {
			// pebble's commit goes on after Fatalf; its success means nothing then.
			return cause
		}
		return err
	case <-g.dead:
		return g.err()
	}
}

// fatal records err and parks the calling goroutine for ever. It is called by pebble only.
func (g *guard) fatal(err error) {
	g.kill(err)
	select {}
}

// Infof implements pebble.Logger: nothing is logged.
func (g *guard) Infof(string, ...any) {}

// Errorf implements pebble.Logger: errors reach the caller as errors.
func (g *guard) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger. It does not return.
func (g *guard) Fatalf(format string, args ...any) {
	var cause error
	for _, a := range args {
		if err, ok := a.(error); ok {
			cause = err
		}
	}
	if cause == nil {
		cause = fmt.Errorf(format, args...)
	}
	g.fatal(cause)
}

// guardFS parks the goroutine that meets a write error, and every one that writes after the guard died or was sealed. The error
// never reaches pebble, which would panic with a mutex in the wrong state at some of the places.
type guardFS struct {
	vfs.FS
	g *guard
}

// enter parks the caller if nothing may be written any more.
func (g *guard) enter() {
	g.mu.Lock()
	stop := g.cause != nil || g.sealed
	g.mu.Unlock()
	if stop {
		select {}
	}
}

// leave is fatal for an error of a write.
func (g *guard) leave(err error) error {
	if err != nil {
		g.fatal(err)
	}
	return nil
}

func (f *guardFS) file(file vfs.File, err error) (vfs.File, error) {
	if err := f.g.leave(err); err != nil {
		return nil, err
	}
	return &guardFile{File: file, g: f.g}, nil
}

func (f *guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.g.enter()
	return f.file(f.FS.Create(name, c))
}

func (f *guardFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f.g.enter()
	return f.file(f.FS.OpenReadWrite(name, c, opts...))
}

func (f *guardFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.g.enter()
	return f.file(f.FS.ReuseForWrite(oldname, newname, c))
}

// OpenDir opens a directory to sync it: a read until then, whose errors pebble handles.
func (f *guardFS) OpenDir(name string) (vfs.File, error) {
	d, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: d, g: f.g}, nil
}

func (f *guardFS) Link(oldname, newname string) error {
	f.g.enter()
	return f.g.leave(f.FS.Link(oldname, newname))
}

// Remove frees space; its errors are pebble's to handle.
func (f *guardFS) Remove(name string) error {
	f.g.enter()
	return f.FS.Remove(name)
}

func (f *guardFS) RemoveAll(name string) error {
	f.g.enter()
	return f.FS.RemoveAll(name)
}

func (f *guardFS) Rename(oldname, newname string) error {
	f.g.enter()
	return f.g.leave(f.FS.Rename(oldname, newname))
}

func (f *guardFS) MkdirAll(dir string, perm os.FileMode) error {
	f.g.enter()
	return f.g.leave(f.FS.MkdirAll(dir, perm))
}

// Lock keeps the lock for the guard: pebble counts references and would not give it back after a fatal error.
func (f *guardFS) Lock(name string) (io.Closer, error) {
	c, err := f.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	l := &heldLock{Closer: c}
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	f.g.lock = l
	return l, nil
}

// heldLock is a file lock that may be released twice.
type heldLock struct {
	io.Closer
	once sync.Once
	err  error
}

func (l *heldLock) Close() error {
	l.once.Do(func() { l.err = l.Closer.Close() })
	return l.err
}

func (f *guardFS) Unwrap() vfs.FS { return f.FS }

// guardFile is a file of a guardFS.
type guardFile struct {
	vfs.File
	g *guard
}

func (f *guardFile) Write(p []byte) (int, error) {
	f.g.enter()
	n, err := f.File.Write(p)
	return n, f.g.leave(err)
}

func (f *guardFile) WriteAt(p []byte, off int64) (int, error) {
	f.g.enter()
	n, err := f.File.WriteAt(p, off)
	return n, f.g.leave(err)
}

// Preallocate is an optimisation: on a nearly full disk it fails before there is need.
func (f *guardFile) Preallocate(off, length int64) error {
	f.g.enter()
	_ = f.File.Preallocate(off, length)
	return nil
}

func (f *guardFile) Sync() error {
	f.g.enter()
	return f.g.leave(f.File.Sync())
}

func (f *guardFile) SyncData() error {
	f.g.enter()
	return f.g.leave(f.File.SyncData())
}

func (f *guardFile) SyncTo(length int64) (bool, error) {
	f.g.enter()
	full, err := f.File.SyncTo(length)
	return full, f.g.leave(err)
}
