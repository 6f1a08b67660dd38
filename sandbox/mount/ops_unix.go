//go:build unix

package mount

import (
	"io/fs"
	"path"
	"strings"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"
)

// Lstat implements experimental/sys.FS. A path with a trailing slash follows a last symbolic link, as POSIX has it.
func (m *FS) Lstat(name string) (wasys.Stat_t, Errno) {
	if strings.HasSuffix(name, "/") {
		return m.Stat(name)
	}
	p, errno := m.walk(name)
	if errno != 0 {
		return wasys.Stat_t{}, errno
	}
	defer p.close()
	var st unix.Stat_t
	if errno := p.stat(&st); errno != 0 {
		return wasys.Stat_t{}, errno
	}
	if errno := m.visible(name, &st); errno != 0 {
		return wasys.Stat_t{}, errno
	}
	return statOf(&st), 0
}

// Stat implements experimental/sys.FS.
func (m *FS) Stat(name string) (wasys.Stat_t, Errno) {
	p, st, missing, errno := m.follow(name)
	if errno != 0 {
		return wasys.Stat_t{}, errno
	}
	defer p.close()
	if missing {
		return wasys.Stat_t{}, experimentalsys.ENOENT
	}
	return statOf(&st), 0
}

// entry walks to a path whose last element is to be changed itself, and refuses the mount's own top.
func (m *FS) entry(action Action, name string) (place, Errno) {
	p, errno := m.walk(name)
	if errno != 0 {
		return p, errno
	}
	if p.base == "." {
		p.close()
		return p, experimentalsys.EINVAL
	}
	if !m.writable {
		p.close()
		m.refuse(action, name, "read-only mount")
		return p, experimentalsys.EROFS
	}
	return p, 0
}

// Mkdir implements experimental/sys.FS.
func (m *FS) Mkdir(name string, perm fs.FileMode) Errno {
	p, errno := m.walk(name)
	if errno != 0 {
		return errno
	}
	defer p.close()
	var st unix.Stat_t
	if p.base == "." || p.stat(&st) == 0 {
		return experimentalsys.EEXIST
	}
	if errno := m.mayCreate(&p, Mkdir, name); errno != 0 {
		return errno
	}
	if !m.quota.takeFile() {
		m.refuse(Mkdir, name, "limit of created files")
		return EDQUOT
	}
	m.before(&p, name)
	errno = retry(func() error { return unix.Mkdirat(p.fd, p.base, uint32(perm.Perm())) })
	if errno != 0 {
		m.quota.giveFile()
		return errno
	}
	m.note(Mkdir, name)
	return 0
}

// Chmod is not part of WASI preview 1.
func (m *FS) Chmod(string, fs.FileMode) Errno { return experimentalsys.ENOSYS }

// Rmdir implements experimental/sys.FS.
func (m *FS) Rmdir(name string) Errno { return m.remove(name, true) }

// Unlink implements experimental/sys.FS. Devices, FIFOs and sockets can be removed.
func (m *FS) Unlink(name string) Errno { return m.remove(name, false) }

func (m *FS) remove(name string, dir bool) Errno {
	p, errno := m.entry(Remove, name)
	if errno != 0 {
		return errno
	}
	defer p.close()
	var st unix.Stat_t
	if errno := p.stat(&st); errno != 0 {
		return errno
	}
	if errno := m.movable(Remove, name, &st); errno != 0 {
		return errno
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case dir && !isDir:
		return experimentalsys.ENOTDIR
	case !dir && isDir:
		return experimentalsys.EISDIR
	case !dir && p.slash:
		return experimentalsys.ENOTDIR
	}
	m.before(&p, name)
	flags := 0
	if dir {
		flags = unix.AT_REMOVEDIR
	}
	errno = retry(func() error { return unix.Unlinkat(p.fd, p.base, flags) })
	if errno == 0 {
		m.unlinked(&st)
		m.note(Remove, name)
	}
	return errno
}

// unlinked forgets one of the names that were made through this mount.
func (m *FS) unlinked(st *unix.Stat_t) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id := inodeOf(st); m.linked[id] > 0 {
		m.linked[id]--
	}
}

// movable refuses to take away the name of a private place or of a directory above one.
func (m *FS) movable(action Action, name string, st *unix.Stat_t) Errno {
	if m.guard.hides(st) {
		m.refuse(action, name, "private to the host")
		return experimentalsys.ENOENT
	}
	if m.guard.pins(st) {
		m.refuse(action, name, "holds a directory that is private to the host")
		return EBUSY
	}
	return 0
}

// Rename implements experimental/sys.FS.
func (m *FS) Rename(from, to string) Errno { return m.RenameTo(from, m, to) }

// RenameTo renames between two directories of one mount; between mounts it is EXDEV.
func (m *FS) RenameTo(from string, target *FS, to string) Errno {
	if !m.Same(target) {
		return EXDEV
	}
	src, errno := m.entry(Rename, from)
	if errno != 0 {
		return errno
	}
	defer src.close()
	dst, errno := target.entry(Rename, to)
	if errno != 0 {
		return errno
	}
	defer dst.close()
	var st, old unix.Stat_t
	if errno := src.stat(&st); errno != 0 {
		return errno
	}
	if errno := m.movable(Rename, from, &st); errno != 0 {
		return errno
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if (src.slash || dst.slash) && !isDir {
		return experimentalsys.ENOTDIR
	}
	switch errno := dst.stat(&old); errno {
	case 0:
		if errno := target.movable(Rename, to, &old); errno != 0 {
			return errno
		}
	case experimentalsys.ENOENT:
		if errno := target.mayCreate(&dst, Rename, to); errno != 0 {
			return errno
		}
	default:
		return errno
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		text, errno := src.readlink()
		if errno != 0 {
			return errno
		}
		if errno := target.linkStays(&dst, to, text); errno != 0 {
			return errno
		}
	}
	m.beforeRename(&src, from, target, &dst, to, isDir)
	errno = retry(func() error { return unix.Renameat(src.fd, src.base, dst.fd, dst.base) })
	if errno == 0 {
		m.audit.add(Event{Action: Rename, Path: m.guestPath(from), To: target.guestPath(to)})
	}
	return errno
}

// Link implements experimental/sys.FS.
func (m *FS) Link(from, to string) Errno { return m.LinkTo(from, m, to) }

// LinkTo makes a hard link between two directories of one mount. A symbolic link is not followed. Only regular files
// are linked.
func (m *FS) LinkTo(from string, target *FS, to string) Errno {
	if !m.Same(target) {
		return EXDEV
	}
	src, errno := m.entry(Link, from)
	if errno != 0 {
		return errno
	}
	defer src.close()
	dst, errno := target.entry(Link, to)
	if errno != 0 {
		return errno
	}
	defer dst.close()
	var st unix.Stat_t
	if errno := src.stat(&st); errno != 0 {
		return errno
	}
	if errno := m.visible(from, &st); errno != 0 {
		return errno
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return experimentalsys.EPERM
	case src.slash || dst.slash:
		return experimentalsys.ENOENT
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		text, errno := src.readlink()
		if errno != 0 {
			return errno
		}
		if errno := target.linkStays(&dst, to, text); errno != 0 {
			return errno
		}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		m.refuse(Link, from, "not a regular file")
		return experimentalsys.EACCES
	}
	if errno := target.mayCreate(&dst, Link, to); errno != 0 {
		return errno
	}
	if !m.quota.takeFile() {
		m.refuse(Link, to, "limit of created files")
		return EDQUOT
	}
	target.before(&dst, to)
	errno = retry(func() error { return unix.Linkat(src.fd, src.base, dst.fd, dst.base, 0) })
	if errno != 0 {
		m.quota.giveFile()
		return errno
	}
	m.mu.Lock()
	m.linked[inodeOf(&st)]++
	m.mu.Unlock()
	m.audit.add(Event{Action: Link, Path: m.guestPath(from), To: target.guestPath(to)})
	return 0
}

// Symlink implements experimental/sys.FS. What the link says must be relative and stay inside the mount: programs of
// the host follow it later, without our care.
func (m *FS) Symlink(text, name string) Errno {
	p, errno := m.entry(Symlink, name)
	if errno != 0 {
		return errno
	}
	defer p.close()
	switch {
	case text == "":
		return experimentalsys.ENOENT
	case len(text) >= maxPath:
		return experimentalsys.ENAMETOOLONG
	case strings.IndexByte(text, 0) >= 0:
		return experimentalsys.EINVAL
	}
	var st unix.Stat_t
	if p.stat(&st) == 0 {
		if p.slash && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return experimentalsys.ENOTDIR
		}
		return experimentalsys.EEXIST
	}
	if p.slash {
		return experimentalsys.ENOENT
	}
	if errno := m.linkStays(&p, name, text); errno != 0 {
		return errno
	}
	if errno := m.mayCreate(&p, Symlink, name); errno != 0 {
		return errno
	}
	if !m.quota.takeFile() {
		m.refuse(Symlink, name, "limit of created files")
		return EDQUOT
	}
	m.before(&p, name)
	errno = retry(func() error { return unix.Symlinkat(text, p.fd, p.base) })
	if errno != 0 {
		m.quota.giveFile()
		return errno
	}
	m.audit.add(Event{Action: Symlink, Path: m.guestPath(name), To: text})
	return 0
}

// linkStays checks what a symbolic link at p would say.
func (m *FS) linkStays(p *place, name, text string) Errno {
	_, rel, ok := m.canonical(p.fd)
	if !ok {
		rel = joinRel(m.rel, p.dirPath)
	}
	if strings.HasPrefix(text, "/") {
		m.refuse(Symlink, name, "a symbolic link with an absolute path")
		return experimentalsys.EPERM
	}
	if end := path.Join(rel, text); end == ".." || strings.HasPrefix(end, "../") {
		m.refuse(Symlink, name, "a symbolic link that leaves the mount")
		return experimentalsys.EPERM
	}
	return 0
}

// Readlink implements experimental/sys.FS.
func (m *FS) Readlink(name string) (string, Errno) {
	p, errno := m.walk(name)
	if errno != 0 {
		return "", errno
	}
	defer p.close()
	var st unix.Stat_t
	if errno := p.stat(&st); errno != 0 {
		return "", errno
	}
	if errno := m.visible(name, &st); errno != 0 {
		return "", errno
	}
	if p.slash {
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return "", experimentalsys.EINVAL
		}
		return "", experimentalsys.ENOTDIR
	}
	return p.readlink()
}

// Utimens implements experimental/sys.FS: it follows symbolic links.
func (m *FS) Utimens(name string, atim, mtim int64) Errno { return m.SetTimes(name, atim, mtim, true) }

// SetTimes sets times of a file or directory, or of a symbolic link itself.
func (m *FS) SetTimes(name string, atim, mtim int64, follow bool) Errno {
	var p place
	var st unix.Stat_t
	var errno Errno
	if follow {
		var missing bool
		p, st, missing, errno = m.follow(name)
		if errno == 0 && missing {
			p.close()
			errno = experimentalsys.ENOENT
		}
		if errno != 0 {
			return errno
		}
	} else {
		if p, errno = m.walk(name); errno != 0 {
			return errno
		}
		if errno = p.stat(&st); errno == 0 {
			errno = m.visible(name, &st)
		}
		if errno != 0 {
			p.close()
			return errno
		}
	}
	defer p.close()
	if !m.writable {
		m.refuse(Times, name, "read-only mount")
		return experimentalsys.EROFS
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG && m.foreignLinks(&st) {
		m.refuse(Times, name, "the file has names that may lie outside of the mount")
		return experimentalsys.EPERM
	}
	if atim == experimentalsys.UTIME_OMIT {
		atim = st.Atim.Nano()
	}
	if mtim == experimentalsys.UTIME_OMIT {
		mtim = st.Mtim.Nano()
	}
	ts := []unix.Timespec{unix.NsecToTimespec(atim), unix.NsecToTimespec(mtim)}
	errno = retry(func() error { return unix.UtimesNanoAt(p.fd, p.base, ts, unix.AT_SYMLINK_NOFOLLOW) })
	if errno == 0 {
		m.note(Times, name)
	}
	return errno
}
