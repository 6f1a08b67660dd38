//go:build unix

package mount

import (
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// before puts the state of a path into the journal, ahead of a change.
func (m *FS) before(p *place, name string) {
	if m.journal == nil {
		return
	}
	m.recordAt(p.fd, p.base, m.hostPath(p, name))
}

// hostPath returns the host's path of a place, without symbolic links in its directory part where the system tells.
func (m *FS) hostPath(p *place, name string) string {
	if abs, _, ok := m.canonical(p.fd); ok {
		return path.Join(abs, p.base)
	}
	return path.Join(m.host, m.rel, name)
}

// guestOf returns the guest's path of a host path below the mount.
func (m *FS) guestOf(host string) string {
	if rest, ok := cutDir(host, m.host); ok {
		return path.Join(m.guest, rest)
	}
	return host
}

func cutDir(p, dir string) (string, bool) {
	if p == dir {
		return "", true
	}
	if within(p, dir) {
		return strings.TrimPrefix(p[len(dir):], "/"), true
	}
	return "", false
}

func (m *FS) recordAt(dirfd int, base, host string) {
	if m.journal.seen(host) {
		return
	}
	state := stateAt(dirfd, base, m.journal.room())
	rel, ok := cutDir(host, m.host)
	after := func() State { return State{} }
	if ok {
		// The final state is read through the mount, so that a link made meanwhile cannot lead the host astray.
		after = func() State { return m.stateOf(rel) }
	}
	m.journal.record(host, m.guestOf(host), state, after)
}

// stateOf reads a state by path.
func (m *FS) stateOf(rel string) State {
	p, errno := m.main.walk(rel)
	if errno != 0 {
		return State{}
	}
	defer p.close()
	return stateAt(p.fd, p.base, MaxImage)
}

// stateAt reads what a name stands for, keeping at most room bytes of content.
func stateAt(dirfd int, base string, room int64) State {
	p := place{fd: dirfd, base: base}
	var st unix.Stat_t
	if p.stat(&st) != 0 {
		return State{}
	}
	s := State{Exists: true, Mode: modeOf(uint32(st.Mode)), Size: st.Size}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		s.Size = 0
	case unix.S_IFLNK:
		text, errno := p.readlink()
		s.Data, s.Cut = []byte(text), errno != 0
	case unix.S_IFREG:
		if st.Size > room {
			s.Cut = true
			return s
		}
		data, ok := readAll(dirfd, base, st.Size)
		s.Data, s.Cut = data, !ok
	default:
		s.Cut = true
	}
	return s
}

func readAll(dirfd int, base string, size int64) ([]byte, bool) {
	fd, errno := openat(dirfd, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, false
	}
	defer unix.Close(fd)
	data := make([]byte, size)
	var off int64
	for off < size {
		n, errno := pread(fd, data[off:], off)
		if errno != 0 {
			return nil, false
		}
		if n == 0 {
			break
		}
		off += int64(n)
	}
	return data[:off], true
}

// beforeRename records both names, and for a directory everything below it: each file then has left one path and
// come to another.
func (m *FS) beforeRename(src *place, from string, target *FS, dst *place, to string, isDir bool) {
	if m.journal == nil {
		return
	}
	srcHost, dstHost := m.hostPath(src, from), target.hostPath(dst, to)
	m.recordAt(src.fd, src.base, srcHost)
	m.recordAt(dst.fd, dst.base, dstHost)
	if isDir {
		left := MaxChanges
		m.recordTree(src.fd, src.base, srcHost, dstHost, &left)
	}
}

// recordTree records every path below a directory, under its present and its coming name.
func (m *FS) recordTree(dirfd int, base, srcHost, dstHost string, left *int) {
	fd, errno := openat(dirfd, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errno != 0 {
		return
	}
	dir := os.NewFile(uintptr(fd), base)
	defer dir.Close()
	list, errno := m.entries(dir)
	if errno != 0 {
		return
	}
	for _, e := range list {
		if *left--; *left < 0 {
			return
		}
		s, d := path.Join(srcHost, e.Name), path.Join(dstHost, e.Name)
		m.recordAt(fd, e.Name, s)
		if !m.journal.seen(d) {
			rel, _ := cutDir(d, m.host)
			m.journal.record(d, m.guestOf(d), State{}, func() State { return m.stateOf(rel) })
		}
		if e.IsDir() {
			m.recordTree(fd, e.Name, s, d, left)
		}
	}
}
