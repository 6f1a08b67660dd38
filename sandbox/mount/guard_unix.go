//go:build unix

package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// guard keeps private places of the host out of a guest's reach, by identity and not by name, so that no alias of a
// path gets around it. A nil guard, or one without places inside the mount, costs nothing.
type guard struct {
	// hidden are the places themselves.
	hidden map[inode]bool
	// pinned are the directories above them inside the mount: a guest that renamed one away could build a copy in its
	// place.
	pinned map[inode]bool
	// absent are names that do not exist yet and must not be created, by directory.
	absent map[inode]map[string]bool
	top    inode
}

func newGuard(host string, private []string) (*guard, error) {
	g := &guard{hidden: map[inode]bool{}, pinned: map[inode]bool{}, absent: map[inode]map[string]bool{}}
	var top unix.Stat_t
	if err := unix.Stat(host, &top); err != nil {
		return nil, err
	}
	g.top = inodeOf(&top)
	for _, p := range private {
		if err := g.add(host, p); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// add hides one path when it lies below host. A mount inside the private place is refused.
func (g *guard) add(host, private string) error {
	if !filepath.IsAbs(private) {
		return errors.New("private path " + private + " is not absolute")
	}
	existing, missing, err := deepest(filepath.Clean(private))
	if err != nil {
		return err
	}
	if missing == "" && (existing == host || within(host, existing)) {
		return errors.New("the directory is private to this program")
	}
	if existing != host && !within(existing, host) {
		return nil
	}
	if missing != "" {
		var st unix.Stat_t
		if err := unix.Lstat(existing, &st); err != nil {
			return err
		}
		dir := inodeOf(&st)
		if g.absent[dir] == nil {
			g.absent[dir] = map[string]bool{}
		}
		g.absent[dir][strings.ToLower(missing)] = true
		if dir != g.top {
			g.pinned[dir] = true
		}
	} else if err := mark(g.hidden, existing); err != nil {
		return err
	}
	for dir := filepath.Dir(existing); dir != host && within(dir, host); dir = filepath.Dir(dir) {
		if err := mark(g.pinned, dir); err != nil {
			return err
		}
	}
	return nil
}

func mark(set map[inode]bool, path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	set[inodeOf(&st)] = true
	return nil
}

// deepest splits a path into its longest existing part, links resolved, and the first element that is missing.
func deepest(path string) (existing, missing string, err error) {
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, missing, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) || path == "/" {
			return "", "", err
		}
		if _, lerr := os.Lstat(path); lerr == nil {
			return "", "", errors.New("private path " + path + " is a dangling link")
		}
		path, missing = filepath.Dir(path), filepath.Base(path)
	}
}

func within(p, dir string) bool {
	return dir == "/" && p != "/" || strings.HasPrefix(p, dir+"/")
}

func inodeOf(st *unix.Stat_t) inode { return inode{uint64(st.Dev), st.Ino} }

// allows reports whether an open directory lies outside every hidden place. It climbs to the top of the mount, because
// only the chain of parents tells where a directory really is.
func (g *guard) allows(fd int) bool {
	if g == nil || len(g.hidden) == 0 {
		return true
	}
	at, own := fd, false
	defer func() {
		if own {
			unix.Close(at)
		}
	}()
	for range maxPath {
		var st unix.Stat_t
		if unix.Fstat(at, &st) != nil {
			return false
		}
		id := inodeOf(&st)
		if g.hidden[id] {
			return false
		}
		if id == g.top {
			return true
		}
		up, err := unix.Openat(at, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			return false
		}
		if own {
			unix.Close(at)
		}
		at, own = up, true
	}
	return false
}

// hides reports whether a file is a hidden place.
func (g *guard) hides(st *unix.Stat_t) bool {
	return g != nil && g.hidden[inodeOf(st)]
}

// pins reports whether a file must keep its name.
func (g *guard) pins(st *unix.Stat_t) bool {
	return g != nil && (g.pinned[inodeOf(st)] || g.hidden[inodeOf(st)])
}

// mayCreate reports whether a name may come into being in a directory. Letter case is ignored, because the host's file
// system may ignore it.
func (g *guard) mayCreate(dirfd int, name string) bool {
	if g == nil || len(g.absent) == 0 {
		return true
	}
	var st unix.Stat_t
	if unix.Fstat(dirfd, &st) != nil {
		return false
	}
	return !g.absent[inodeOf(&st)][strings.ToLower(name)]
}
