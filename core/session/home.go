package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/core/event"
	"atoll/core/store"
)

// ErrNotFound: there is no such session in this workspace.
var ErrNotFound = errors.New("no such session")

// LockedError says who has a session open. errors.Is(err, store.ErrLocked) holds.
type LockedError struct {
	ID  string
	PID int // 0 where unknown
}

// Error implements error.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("session %s is open in another process", e.ID)
	}
	return fmt.Sprintf("session %s is open in process %d", e.ID, e.PID)
}

// Unwrap returns store.ErrLocked.
func (e *LockedError) Unwrap() error { return store.ErrLocked }

// Options configure a Home.
type Options struct {
	// Dir is the data directory; sessions live in Dir/sessions/<workspace fingerprint>/<id>, long tool output in
	// Dir/spill/<id>. Required.
	Dir string
	// Clock is the time; nil means SystemClock.
	Clock Clock
	// Random makes ids differ; nil means crypto/rand.
	Random io.Reader
	// FS is the file system of the journals; nil means the operating system's. Folders, lists and spilled output are always
	// the operating system's.
	FS store.FS
}

// Home is a data directory with sessions. It holds no open files and may be used by many goroutines and processes at once.
type Home struct {
	opts Options
}

// NewHome returns the home in a data directory, which need not exist.
func NewHome(o Options) *Home {
	if o.Clock == nil {
		o.Clock = SystemClock{}
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return &Home{opts: o}
}

// Start is what a new session begins with.
type Start struct {
	Workspace string // absolute path
	Mode      string
	Model     string
}

func (h *Home) workspaceDir(workspace string) string {
	return filepath.Join(h.opts.Dir, "sessions", Fingerprint(workspace))
}

func (h *Home) spillDir(id string) string { return filepath.Join(h.opts.Dir, "spill", id) }

// Create makes a new session.
func (h *Home) Create(st Start) (*Session, error) {
	id, err := newID(h.opts.Clock.Now(), h.opts.Random)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(h.workspaceDir(st.Workspace), id)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("create session: %w", diskError(err))
	}
	// Mkdir fails where two processes drew the same id.
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create session: %w", diskError(err))
	}
	db, err := h.createStore(filepath.Join(dir, storeDir))
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	if err := syncDirs(dir, filepath.Dir(dir), filepath.Join(h.opts.Dir, "sessions"), h.opts.Dir); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("create session: %w", diskError(err))
	}
	s := &Session{id: id, dir: dir, spill: h.spillDir(id), db: db, clock: h.opts.Clock}
	s.writePID()
	if err := s.Emit(event.SessionStarted{Session: id, Workspace: st.Workspace, Mode: st.Mode, Model: st.Model}); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("create session: %w", err)
	}
	if err := s.SaveMeta(); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("create session: %w", diskError(err))
	}
	return s, nil
}

// createStore makes the store of a new session. Somebody who lists the folder may hold it for a moment, to see what it is.
func (h *Home) createStore(dir string) (*store.DB, error) {
	const tries = 400
	for i := 1; ; i++ {
		db, err := store.Open(dir, store.Options{Create: true, FS: h.opts.FS})
		if !errors.Is(err, store.ErrLocked) || i == tries {
			return db, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// syncDirs makes new names in the folders durable. Windows has no such call for folders.
func syncDirs(dirs ...string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for _, dir := range dirs {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		err = d.Sync()
		if cerr := d.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Open opens a session of a workspace and repairs what a crash left open in it.
func (h *Home) Open(workspace, id string) (*Session, error) {
	s, err := h.open(workspace, id)
	if err != nil {
		return nil, err
	}
	s.writePID()
	if fix := s.state.repair(); len(fix) > 0 {
		if err := s.Emit(fix...); err != nil {
			_ = s.Close()
			return nil, fmt.Errorf("repair session %s: %w", id, err)
		}
		if err := s.SaveMeta(); err != nil {
			_ = s.Close()
			return nil, fmt.Errorf("repair session %s: %w", id, diskError(err))
		}
	}
	return s, nil
}

// open opens without repair.
func (h *Home) open(workspace, id string) (*Session, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	dir := filepath.Join(h.workspaceDir(workspace), id)
	db, err := store.Open(filepath.Join(dir, storeDir), store.Options{FS: h.opts.FS})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	case errors.Is(err, store.ErrLocked):
		return nil, &LockedError{ID: id, PID: readPID(dir)}
	case err != nil:
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	s := &Session{id: id, dir: dir, spill: h.spillDir(id), db: db, clock: h.opts.Clock}
	if err := s.load(); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	if s.state.ID == "" {
		// Its process ended while it was made; nothing was acknowledged.
		_ = db.Close()
		return nil, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return s, nil
}

// View reads a session without changing it.
func (h *Home) View(workspace, id string) (State, error) {
	s, err := h.open(workspace, id)
	if err != nil {
		return State{}, err
	}
	defer s.db.Close()
	return s.state, nil
}

// List returns the sessions of a workspace, the last used first. A session that cannot be read is in the list with the reason;
// one whose creation was cut off is not.
func (h *Home) List(workspace string) ([]Meta, error) {
	return h.list(h.workspaceDir(workspace), workspace)
}

// ListAll returns the sessions of all workspaces, the last used first.
func (h *Home) ListAll() ([]Meta, error) {
	root := filepath.Join(h.opts.Dir, "sessions")
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var all []Meta
	for _, e := range entries {
		if !e.IsDir() || CheckID(e.Name()) != nil {
			continue
		}
		ms, err := h.list(filepath.Join(root, e.Name()), "")
		if err != nil {
			return nil, err
		}
		all = append(all, ms...)
	}
	sortMetas(all)
	return all, nil
}

// list lists one workspace's folder. workspace may be empty.
func (h *Home) list(dir, workspace string) ([]Meta, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	metas := []Meta{}
	for _, e := range entries {
		if !e.IsDir() || CheckID(e.Name()) != nil {
			continue
		}
		m, ok := readMeta(filepath.Join(dir, e.Name()), e.Name())
		if !ok {
			if m, ok = h.rebuild(filepath.Join(dir, e.Name()), e.Name(), workspace); !ok {
				continue
			}
		}
		metas = append(metas, m)
	}
	sortMetas(metas)
	return metas, nil
}

// rebuild makes meta.json from the journal. ok is false for a folder without a session.
func (h *Home) rebuild(dir, id, workspace string) (m Meta, ok bool) {
	m = Meta{ID: id, Workspace: workspace}
	if info, err := os.Stat(dir); err == nil {
		m.Created, m.Updated = info.ModTime().UTC(), info.ModTime().UTC()
	}
	db, err := store.Open(filepath.Join(dir, storeDir), store.Options{FS: h.opts.FS})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Meta{}, false
	case errors.Is(err, store.ErrLocked):
		m.Open = true
		return m, true
	case err != nil:
		m.Damaged = err.Error()
		return m, true
	}
	defer db.Close()
	s := &Session{id: id, dir: dir, spill: h.spillDir(id), db: db, clock: h.opts.Clock}
	if err := s.load(); err != nil {
		m.Damaged = err.Error()
		return m, true
	}
	if s.state.ID == "" {
		return Meta{}, false
	}
	m = metaOf(&s.state)
	_ = writeMeta(dir, m) // the next list tries again
	return m, true
}

func sortMetas(ms []Meta) {
	slices.SortStableFunc(ms, func(a, b Meta) int {
		if c := b.Updated.Compare(a.Updated); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
}

// Last returns the id of the workspace's session that was used last and can be opened, or ErrNotFound.
func (h *Home) Last(workspace string) (string, error) {
	ms, err := h.List(workspace)
	if err != nil {
		return "", err
	}
	for _, m := range ms {
		if m.Damaged == "" {
			return m.ID, nil
		}
	}
	return "", fmt.Errorf("%w in this workspace", ErrNotFound)
}

// Delete removes a session with everything that belongs to it. One that is open is refused.
func (h *Home) Delete(workspace, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	dir := filepath.Join(h.workspaceDir(workspace), id)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return fmt.Errorf("%w: %s", ErrNotFound, id)
	} else if err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	db, err := store.Open(filepath.Join(dir, storeDir), store.Options{FS: h.opts.FS})
	if errors.Is(err, store.ErrLocked) {
		return &LockedError{ID: id, PID: readPID(dir)}
	}
	if err == nil {
		_ = db.Close()
	}
	// Renamed first: a removal that is cut off leaves nothing that looks like a session ('.' is not part of an id).
	trash := filepath.Join(h.workspaceDir(workspace), ".deleted-"+id)
	if err := os.Rename(dir, trash); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	if err := os.RemoveAll(h.spillDir(id)); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	if err := os.RemoveAll(trash); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	return nil
}

// writePID notes who has the session open, for the message that another process shows. It is advice: the lock decides.
func (s *Session) writePID() {
	_ = os.WriteFile(filepath.Join(s.dir, pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600)
}

func readPID(dir string) int {
	b, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// diskError marks a full disk as store.ErrDiskFull.
func diskError(err error) error {
	if store.IsDiskFull(err) && !errors.Is(err, store.ErrDiskFull) {
		return fmt.Errorf("%w: %v", store.ErrDiskFull, err)
	}
	return err
}

// Events calls fn for each journaled event of a session, which is not changed.
func (h *Home) Events(workspace, id string, fn func(event.Event) error) error {
	s, err := h.open(workspace, id)
	if err != nil {
		return err
	}
	defer s.db.Close()
	return s.Events(1, fn)
}
