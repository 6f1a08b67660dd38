//go:build unix

package mount

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"atoll/sandbox/grant"
)

const rdwr, rdonly, wronly = experimentalsys.O_RDWR, experimentalsys.O_RDONLY, experimentalsys.O_WRONLY

func newFS(t testing.TB, dir string, kind grant.Kind, quota *Quota) (*FS, *Journal, *Audit) {
	t.Helper()
	j, a := new(Journal), new(Audit)
	m, err := New(Options{Mount: grant.Mount{Host: dir, Kind: kind}, Quota: quota, Journal: j, Audit: a})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, j, a
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNewRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	put(t, file, "x")
	for name, o := range map[string]Options{
		"missing":      {Mount: grant.Mount{Host: file + "x", Kind: grant.ReadOnly}},
		"file":         {Mount: grant.Mount{Host: file, Kind: grant.ReadOnly}},
		"relative":     {Mount: grant.Mount{Host: "x", Kind: grant.ReadOnly}},
		"no kind":      {Mount: grant.Mount{Host: "/"}},
		"proc":         {Mount: grant.Mount{Host: "/proc/self", Kind: grant.ReadOnly}},
		"private":      {Mount: grant.Mount{Host: filepath.Dir(file), Kind: grant.ReadOnly}, Private: []string{filepath.Dir(file)}},
		"in a private": {Mount: grant.Mount{Host: filepath.Dir(file), Kind: grant.ReadOnly}, Private: []string{filepath.Dir(filepath.Dir(file))}},
	} {
		if m, err := New(o); err == nil {
			m.Close()
			t.Errorf("%s: mounted", name)
		}
	}
}

// TestOtherFileSystems: what is mounted below the mount is not part of it. "/" holds /proc on every Linux system.
func TestOtherFileSystems(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc")
	}
	m, _, audit := newFS(t, "/", grant.ReadOnly, nil)
	for _, name := range []string{"proc/self/status", "proc/version", "proc/self/root/etc/hostname", "proc/self/fd/0"} {
		if f, errno := m.OpenFile(name, rdonly, 0); errno == 0 {
			f.Close()
			t.Errorf("%s: opened", name)
		}
	}
	if f, errno := m.OpenFile("proc", rdonly|experimentalsys.O_DIRECTORY, 0); errno == 0 {
		f.Close()
		t.Error("proc: opened")
	}
	if f, errno := m.OpenFile("etc/passwd", rdonly, 0); errno != 0 {
		t.Errorf("etc/passwd: %v", errno)
	} else {
		f.Close()
	}
	events, _ := audit.Events()
	if len(events) == 0 || !strings.Contains(events[0].Refused, "another file system") {
		t.Errorf("audit: %+v", events)
	}
}

func TestQuota(t *testing.T) {
	dir := t.TempDir()
	quota := NewQuota(100, 2)
	m, _, _ := newFS(t, dir, grant.ReadWrite, quota)
	f, errno := m.OpenFile("a", rdwr|experimentalsys.O_CREAT, 0o666)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Close()
	if n, errno := f.Pwrite([]byte("xx"), 1<<40); errno != EDQUOT || n != 0 {
		t.Errorf("hole: %d %v", n, errno)
	}
	if errno := f.Truncate(101); errno != EDQUOT {
		t.Errorf("truncate: %v", errno)
	}
	if n, errno := f.Write(make([]byte, 60)); n != 60 || errno != 0 {
		t.Errorf("write: %d %v", n, errno)
	}
	if n, errno := f.Pwrite(make([]byte, 60), 0); n != 40 || errno != 0 {
		t.Errorf("write over: %d %v", n, errno)
	}
	if n, errno := f.Write([]byte("x")); n != 0 || errno != EDQUOT {
		t.Errorf("full: %d %v", n, errno)
	}
	if errno := m.Mkdir("d", 0o777); errno != 0 {
		t.Errorf("second name: %v", errno)
	}
	for name, errno := range map[string]Errno{"mkdir": m.Mkdir("e", 0o777), "link": m.Link("a", "l"), "symlink": m.Symlink("a", "s")} {
		if errno != EDQUOT {
			t.Errorf("%s: %v", name, errno)
		}
	}
	if quota.Hit() != "written_bytes" || quota.Written() != 100 {
		t.Errorf("%s %d", quota.Hit(), quota.Written())
	}
}

// TestReadOnly: every way of writing is EROFS.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "text")
	if err := os.Symlink("f", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	m, journal, audit := newFS(t, dir, grant.ReadOnly, nil)
	open := func(name string, flag experimentalsys.Oflag) Errno {
		f, errno := m.OpenFile(name, flag, 0o666)
		if errno == 0 {
			f.Close()
		}
		return errno
	}
	for name, errno := range map[string]Errno{
		"write": open("f", wronly), "read and write": open("f", rdwr), "truncate": open("f", rdonly|experimentalsys.O_TRUNC),
		"append": open("f", wronly|experimentalsys.O_APPEND), "create": open("new", rdonly|experimentalsys.O_CREAT), "through a link": open("l", wronly),
		"create only": open("new", wronly|experimentalsys.O_CREAT|experimentalsys.O_EXCL),
		"mkdir":       m.Mkdir("d", 0o777), "unlink": m.Unlink("f"), "rmdir": m.Rmdir("f"), "rename": m.Rename("f", "g"), "link": m.Link("f", "g"),
		"symlink": m.Symlink("f", "g"), "times": m.Utimens("f", 1, 1), "times of a link": m.SetTimes("l", 1, 1, false),
	} {
		if errno != experimentalsys.EROFS {
			t.Errorf("%s: %v", name, errno)
		}
	}
	f, errno := m.OpenFile("f", rdonly, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Close()
	if errno := f.Utimens(1, 1); errno != experimentalsys.EROFS {
		t.Errorf("times of a descriptor: %v", errno)
	}
	if _, errno := f.Write([]byte("x")); errno != experimentalsys.EBADF {
		t.Errorf("write to a descriptor: %v", errno)
	}
	if errno := f.Truncate(0); errno != experimentalsys.EBADF {
		t.Errorf("truncate of a descriptor: %v", errno)
	}
	if errno := open("f", rdonly|experimentalsys.O_CREAT); errno != 0 {
		t.Errorf("create what exists: %v", errno)
	}
	if changes, _ := journal.Changes(); len(changes) > 0 {
		t.Errorf("%+v", changes)
	}
	if events, _ := audit.Events(); len(events) < 10 {
		t.Errorf("%+v", events)
	}
}

func TestTimes(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "text")
	m, _, _ := newFS(t, dir, grant.ReadWrite, nil)
	at := time.Date(2020, 1, 2, 3, 4, 5, 678, time.UTC).UnixNano()
	if errno := m.Utimens("f", experimentalsys.UTIME_OMIT, at); errno != 0 {
		t.Fatal(errno)
	}
	if st, errno := m.Stat("f"); errno != 0 || st.Mtim != at || st.Atim == at {
		t.Errorf("%+v %v", st, errno)
	}
	f, errno := m.OpenFile("f", rdonly, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer f.Close()
	if errno := f.Utimens(at+1, experimentalsys.UTIME_OMIT); errno != 0 {
		t.Fatal(errno)
	}
	if st, errno := f.Stat(); errno != 0 || st.Mtim != at || st.Atim != at+1 {
		t.Errorf("%+v %v", st, errno)
	}
}

// TestHardLinks: a name whose file has other names gets a file of its own before it is written; links that the guest
// made stay links.
func TestHardLinks(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "outside"), "shared")
	if err := os.Chmod(filepath.Join(dir, "outside"), 0o755); err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "outside"), filepath.Join(ws, "in")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(ws, "own"), "own")
	m, _, _ := newFS(t, ws, grant.ReadWrite, nil)
	text := func(name, s string) {
		t.Helper()
		f, errno := m.OpenFile(name, wronly, 0)
		if errno != 0 {
			t.Fatal(name, errno)
		}
		defer f.Close()
		if _, errno := f.Write([]byte(s)); errno != 0 {
			t.Fatal(name, errno)
		}
	}
	text("in", "X")
	if errno := m.Link("own", "own2"); errno != 0 {
		t.Fatal(errno)
	}
	text("own", "Y")
	for name, want := range map[string]string{"outside": "shared", "ws/in": "Xhared", "ws/own": "Ywn", "ws/own2": "Ywn"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if st, err := os.Stat(filepath.Join(ws, "in")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("mode %v %v", st.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(ws, ".atoll*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSpecialFiles: opening what is no file never waits and never works; looking at it and removing it does.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	m, _, audit := newFS(t, dir, grant.ReadWrite, nil)
	for _, flag := range []experimentalsys.Oflag{rdonly, wronly, rdwr, rdonly | experimentalsys.O_NOFOLLOW, wronly | experimentalsys.O_CREAT, wronly | experimentalsys.O_TRUNC} {
		if _, errno := m.OpenFile("fifo", flag, 0); errno != experimentalsys.EACCES {
			t.Errorf("%v: %v", flag, errno)
		}
	}
	if _, errno := m.Lstat("fifo"); errno != 0 {
		t.Errorf("stat: %v", errno)
	}
	if events, _ := audit.Events(); len(events) != 1 || events[0].Count != 6 {
		t.Errorf("%+v", events)
	}
	if errno := m.Unlink("fifo"); errno != 0 {
		t.Errorf("unlink: %v", errno)
	}
}

// TestNames: names are bytes.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	m, _, _ := newFS(t, dir, grant.ReadWrite, nil)
	for _, name := range []string{"\xff\xfe", "new\nline", "\x1b[31m", " ", "a\\b", ".atoll-x.tmp"} {
		f, errno := m.OpenFile(name, wronly|experimentalsys.O_CREAT, 0o666)
		if errno != 0 {
			t.Errorf("%q: %v", name, errno)
			continue
		}
		f.Close()
	}
	d, errno := m.OpenFile(".", rdonly, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	defer d.Close()
	if list, errno := d.Readdir(-1); errno != 0 || len(list) != 6 {
		t.Errorf("%v %v", list, errno)
	}
	for _, name := range []string{"a\x00b", "/abs", "", strings.Repeat("x", 256), strings.Repeat("x/", 3000)} {
		if _, errno := m.OpenFile(name, wronly|experimentalsys.O_CREAT, 0o666); errno == 0 {
			t.Errorf("%.20q: opened", name)
		}
	}
}

// TestRenamedFolder: a change below a folder that was renamed is recorded under its first and its last name.
func TestRenamedFolder(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a/sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "a/sub/f"), "first")
	m, journal, _ := newFS(t, dir, grant.ReadWrite, nil)
	if errno := m.Rename("a", "b"); errno != 0 {
		t.Fatal(errno)
	}
	f, errno := m.OpenFile("b/sub/f", wronly|experimentalsys.O_TRUNC, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if _, errno := f.Write([]byte("second")); errno != 0 {
		t.Fatal(errno)
	}
	f.Close()
	got := map[string]string{}
	changes, _ := journal.Changes()
	for _, c := range changes {
		got[strings.TrimPrefix(c.Path, dir+"/")] = string(c.Before.Data) + "|" + string(c.After.Data)
	}
	want := map[string]string{"a": "|", "b": "|", "a/sub": "|", "b/sub": "|", "a/sub/f": "first|", "b/sub/f": "|second"}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %q, want %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
}
