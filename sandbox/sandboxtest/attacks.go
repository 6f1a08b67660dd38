//go:build unix

package sandboxtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Secret is what no attack may read; Canary is what none may change.
const (
	Secret = "SECRET-7f3a"
	Canary = "CANARY-91c2"
)

// Attack is one attempt to get out of a mount. The mount is the folder "ws" of a base folder that also holds
// "outside/secret" and "outside/canary", and "ws/in" with a harmless file "ws/in/file".
type Attack struct {
	Name string
	// Setup prepares what the user's folder may hold already; it gets the base folder.
	Setup func(t testing.TB, base string)
	// Steps are given to the attacker, see testdata/attacker.
	Steps []string
	// Host runs beside the guest until stop is closed, for races.
	Host func(base string, stop <-chan struct{})
	// Want are texts that must occur in the output on a read-write mount: what must work all the same.
	Want []string
}

// Layout makes the base folder of an attack and returns the mount's folder.
func Layout(t testing.TB, base string) string {
	t.Helper()
	for name, text := range map[string]string{
		"outside/secret": Secret, "outside/canary": Canary, "outside/dir/secret": Secret, "ws/in/file": "harmless", "ws/file": "harmless",
	} {
		p := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(base, "ws")
}

// Outside describes everything outside of the mount, modes and times included, so that two descriptions differ
// when anything there was changed.
func Outside(t testing.TB, base string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(base, func(p string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if p == filepath.Join(base, "ws") {
			return filepath.SkipDir
		}
		var text []byte
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(p); err != nil {
				return err
			}
		}
		fmt.Fprintf(&b, "%s %v %d %v %q\n", p, info.Mode(), info.Size(), info.ModTime().UnixNano(), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Links counts the names of each regular file outside of the mount: an attack may take one away, inside, but must not
// add one.
func Links(t testing.TB, base string) map[string]uint64 {
	t.Helper()
	links := make(map[string]uint64)
	must(t, filepath.Walk(filepath.Join(base, "outside"), func(p string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			links[p] = uint64(info.Sys().(*syscall.Stat_t).Nlink)
		}
		return err
	}))
	return links
}

// LinksOut lists the symbolic links inside the mount that lead out of it, as far as their text tells.
func LinksOut(t testing.TB, ws string) map[string]bool {
	t.Helper()
	out := make(map[string]bool)
	must(t, filepath.Walk(ws, func(p string, info os.FileInfo, err error) error {
		if err != nil || info.Mode().Type() != os.ModeSymlink {
			return err
		}
		text, err := os.Readlink(p)
		if err != nil {
			return err
		}
		end := text
		if !filepath.IsAbs(text) {
			end = filepath.Join(filepath.Dir(p), text)
		}
		if end != ws && !strings.HasPrefix(end, ws+"/") {
			out[text] = true
		}
		return nil
	}))
	return out
}

// every is each operation that could get at a path, for crossing with path forms.
var every = []string{
	"read|%s", "readnofollow|%s", "write|%s", "append|%s", "trunc|%s", "excl|%s", "create|%s", "alloc|%s", "size|%s", "fdtimes|%s",
	"list|%s", "stat|%s", "lstat|%s", "times|%s", "ltimes|%s", "readlink|%s", "mkdir|%s", "rmdir|%s", "unlink|%s", "dir|%s|d",
	"rename|%s|stolen", "rename|file|%s", "link|%s|linked", "link|file|%s", "linkfollow|%s|linked", "symlink|x|%s",
}

func all(paths ...string) []string {
	var steps []string
	for _, p := range paths {
		for _, op := range every {
			steps = append(steps, fmt.Sprintf(op, p))
		}
		steps = append(steps, "read|stolen", "read|linked", "write|linked", "unlink|linked", "unlink|stolen", "create|file")
	}
	return steps
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Attacks returns the suite.
func Attacks() []Attack {
	link := func(text, name string) func(testing.TB, string) {
		return func(t testing.TB, base string) {
			must(t, os.Symlink(strings.ReplaceAll(text, "BASE", base), filepath.Join(base, "ws", name)))
		}
	}
	list := []Attack{
		{Name: "parent", Steps: all("..", "../outside/secret", "../outside/canary", "in/../../outside/secret", "./../outside/canary",
			"in/../../outside/canary", "../outside", "../outside/dir", "../ws/../outside/secret", "../outside/new")},
		{Name: "parent of a directory descriptor", Steps: append([]string{"dir|in|a"}, all("a:../../outside/secret", "a:../../outside/canary", "a:../../outside/new")...)},
		{Name: "absolute", Steps: all("/etc/passwd", "/", "//", "/proc/self/root/etc/passwd", "/tmp")},
		{Name: "odd", Steps: all("", ".", "./", "in/.", "in/..", "in//file", "///", "...", "in/\\x00/../../outside/secret", "file\\x00", "\\xff\\xfe", "a\\nb",
			strings.Repeat("a", 300), strings.Repeat("a/", 3000)+"x", strings.Repeat("../", 1000)+"etc/passwd", "~", "~/x", "C:\\\\x", "..\\\\outside\\\\secret")},
		{Name: "relative link", Setup: link("../outside/secret", "l"), Steps: all("l", "l/", "./l")},
		{Name: "relative link to change", Setup: link("../outside/canary", "l"), Steps: all("l")},
		{Name: "absolute link", Setup: link("BASE/outside/secret", "l"), Steps: all("l", "l/x")},
		{Name: "absolute link to change", Setup: link("BASE/outside/canary", "l"), Steps: all("l")},
		{Name: "link to a folder", Setup: link("../outside", "l"), Steps: all("l", "l/", "l/secret", "l/canary", "l/dir", "l/dir/secret", "l/new", "l/../outside/canary")},
		{Name: "absolute link to a folder", Setup: link("BASE/outside", "l"), Steps: all("l/secret", "l/canary", "l/new")},
		{Name: "dangling link", Setup: link("../outside/made", "l"), Steps: all("l", "l/", "l/x")},
		{Name: "dangling absolute link", Setup: link("BASE/outside/made", "l"), Steps: all("l", "l/x")},
		{Name: "link to itself", Setup: link("l", "l"), Steps: all("l", "l/x")},
		{Name: "link to the root", Setup: link("/", "l"), Steps: all("l", "l/etc/passwd", "l/BASE/outside/secret")},
		{Name: "cycle", Setup: func(t testing.TB, base string) {
			link("b", "a")(t, base)
			link("a", "b")(t, base)
		}, Steps: all("a", "b/x")},
		{Name: "chain", Setup: func(t testing.TB, base string) {
			link("l2", "l1")(t, base)
			link("in/../l3", "l2")(t, base)
			link("in/../../outside/secret", "l3")(t, base)
		}, Steps: all("l1", "l2", "l3")},
		{Name: "link that the guest makes", Steps: append([]string{"symlink|../outside/secret|g", "symlink|/etc/passwd|h", "symlink|in/../../outside|i",
			"symlink|../../outside/secret|in/j", "mkdir|deep", "mkdir|deep/er", "symlink|../../file|deep/er/up", "rename|deep/er/up|up", "rename|deep/er|er"},
			all("g", "h", "i/secret", "in/j", "up", "er/up")...)},
		{Name: "hard link to outside", Setup: func(t testing.TB, base string) {
			must(t, os.Link(filepath.Join(base, "outside/canary"), filepath.Join(base, "ws/hard")))
		}, Steps: []string{"write|hard", "read|hard"}, Want: []string{"write 0", "read 0 EVILRY-91c2"}},
		{Name: "hard link to outside, times", Setup: func(t testing.TB, base string) {
			must(t, os.Link(filepath.Join(base, "outside/canary"), filepath.Join(base, "ws/hard")))
		}, Steps: []string{"times|hard", "ltimes|hard", "fdtimes|hard"}},
		{Name: "hard link to outside, truncated", Setup: func(t testing.TB, base string) {
			must(t, os.Link(filepath.Join(base, "outside/canary"), filepath.Join(base, "ws/hard")))
		}, Steps: []string{"trunc|hard", "append|hard", "read|hard"}, Want: []string{"trunc 0", "read 0 EVIL"}},
		{Name: "fifo", Setup: func(t testing.TB, base string) {
			must(t, syscall.Mkfifo(filepath.Join(base, "ws/fifo"), 0o666))
		}, Steps: []string{"read|fifo", "readnofollow|fifo", "write|fifo", "append|fifo", "trunc|fifo", "create|fifo", "excl|fifo", "size|fifo", "list|fifo",
			"list|fifo/", "read|fifo/x", "link|fifo|x", "stat|fifo", "rename|fifo|y", "unlink|y"}},
		{Name: "socket", Setup: func(t testing.TB, base string) {
			// The kernel's limit on a socket's path is short, so it is made elsewhere and moved.
			dir, err := os.MkdirTemp("", "s")
			must(t, err)
			l, err := net.Listen("unix", filepath.Join(dir, "s"))
			must(t, err)
			t.Cleanup(func() { l.Close(); os.RemoveAll(dir) })
			must(t, os.Rename(filepath.Join(dir, "s"), filepath.Join(base, "ws/sock")))
		}, Steps: []string{"read|sock", "write|sock", "append|sock", "trunc|sock", "create|sock", "link|sock|x", "stat|sock"}},
		{Name: "device", Setup: func(t testing.TB, base string) {
			if err := syscall.Mknod(filepath.Join(base, "ws/zero"), syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
				t.Logf("no device could be made: %v", err)
			}
		}, Steps: []string{"read|zero", "write|zero", "append|zero", "trunc|zero", "create|zero", "link|zero|x", "stat|zero"}},
		{Name: "links into the system", Setup: func(t testing.TB, base string) {
			link("/proc/self/root", "root")(t, base)
			link("/proc/self/fd/0", "fd")(t, base)
			link("/dev/zero", "zero")(t, base)
			link("/proc/self/cwd/../..", "cwd")(t, base)
		}, Steps: all("root/etc/passwd", "fd", "zero", "cwd/etc/passwd")},
		{Name: "descriptors", Steps: []string{"renumber|3|0", "renumber|0|3", "renumber|3|2000000000", "renumber|3|-1", "renumber|-1|3", "renumber|77|3",
			"dir|in|a", "renumber|4|1000000", "readfd|3", "readfd|4", "readfd|99", "readfd|-1"}},
		{Name: "directory taken over", Steps: []string{"dir|in|a", "rename|in|moved", "symlink|../outside|in", "mkdir|in", "read|a:file", "read|a:secret", "create|a:new",
			"rename|a:file|b", "read|a:../outside/secret", "read|moved/new"}, Want: []string{"read 0 harmless"}},
		{Name: "removed directory", Steps: []string{"mkdir|gone", "dir|gone|a", "rmdir|gone", "create|a:x", "read|a:../file", "mkdir|a:y", "rename|file|a:z", "list|a:."}},
		{Name: "rename over", Steps: []string{"rename|..|x", "rename|in|..", "rename|in|../outside/dir", "rename|../outside/canary|c", "rename|.|x", "rename|in|in/sub", "rmdir|.", "unlink|."}},
	}
	return append(list, races()...)
}

// races are attacks in which somebody on the host exchanges a path while the guest uses it.
func races() []Attack {
	swap := func(a, b string) func(string, <-chan struct{}) {
		return func(base string, stop <-chan struct{}) {
			ws := filepath.Join(base, "ws")
			for {
				select {
				case <-stop:
					return
				default:
				}
				os.Rename(filepath.Join(ws, a), filepath.Join(ws, "swap-tmp"))
				os.Rename(filepath.Join(ws, b), filepath.Join(ws, a))
				os.Rename(filepath.Join(ws, "swap-tmp"), filepath.Join(ws, b))
			}
		}
	}
	prepare := func(target string) func(testing.TB, string) {
		return func(t testing.TB, base string) {
			must(t, os.Mkdir(filepath.Join(base, "ws/d"), 0o777))
			for _, n := range []string{"secret", "canary", "x"} {
				must(t, os.WriteFile(filepath.Join(base, "ws/d", n), []byte("harmless"), 0o666))
			}
			must(t, os.Symlink(target, filepath.Join(base, "ws/e")))
		}
	}
	steps := []string{"300|read|d/secret", "300|write|d/canary", "300|trunc|d/canary", "300|create|d/new", "300|unlink|d/canary", "300|mkdir|d/sub",
		"300|rmdir|d/sub", "300|symlink|x|d/l", "300|rename|file|d/stolen", "300|link|d/secret|linked", "300|times|d/secret", "300|list|d"}
	return []Attack{
		{Name: "race: folder and link", Setup: prepare("../outside"), Host: swap("d", "e"), Steps: steps},
		{Name: "race: file and link", Setup: func(t testing.TB, base string) {
			must(t, os.Symlink("../outside/canary", filepath.Join(base, "ws/e")))
			must(t, os.WriteFile(filepath.Join(base, "ws/d"), []byte("harmless"), 0o666))
		}, Host: swap("d", "e"), Steps: []string{"500|read|d", "500|write|d", "500|trunc|d", "500|append|d", "500|times|d", "500|ltimes|d"}},
		{Name: "race: file and fifo", Setup: func(t testing.TB, base string) {
			must(t, syscall.Mkfifo(filepath.Join(base, "ws/e"), 0o666))
			must(t, os.WriteFile(filepath.Join(base, "ws/d"), []byte("harmless"), 0o666))
		}, Host: swap("d", "e"), Steps: []string{"500|read|d", "500|write|d", "500|append|d"}},
		{Name: "race: folder moved up", Setup: func(t testing.TB, base string) {
			must(t, os.MkdirAll(filepath.Join(base, "ws/a/b/c"), 0o777))
		}, Host: func(base string, stop <-chan struct{}) {
			ws := filepath.Join(base, "ws")
			for {
				select {
				case <-stop:
					return
				default:
				}
				os.Rename(filepath.Join(ws, "a/b/c"), filepath.Join(ws, "c"))
				os.Rename(filepath.Join(ws, "c"), filepath.Join(ws, "a/b/c"))
			}
		}, Steps: []string{"1000|read|a/b/c/../../../../outside/secret", "1000|read|a/b/c/../../../outside/secret", "1000|write|a/b/c/../../../../outside/canary"}},
	}
}
