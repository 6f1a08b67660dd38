//go:build unix

package mount

import (
	"fmt"
	"io/fs"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

// OpenFile implements experimental/sys.FS. Beyond its contract: O_TRUNC needs write access; O_CREAT on a read-only
// mount opens what exists and answers EROFS for what does not; O_NOFOLLOW on a symbolic link is ELOOP. A directory
// comes back as a *Dir.
func (m *FS) OpenFile(name string, flag experimentalsys.Oflag, perm fs.FileMode) (experimentalsys.File, Errno) {
	access := flag & (experimentalsys.O_RDONLY | experimentalsys.O_RDWR | experimentalsys.O_WRONLY)
	write := access != experimentalsys.O_RDONLY || flag&experimentalsys.O_TRUNC != 0
	if flag&experimentalsys.O_DIRECTORY != 0 && flag&experimentalsys.O_CREAT != 0 {
		return nil, experimentalsys.EINVAL
	}
	// Another process may make, remove or exchange the file between two of our steps; then we look again.
	for range 8 {
		f, errno := m.openOnce(name, flag, perm, write)
		if errno != experimentalsys.EAGAIN {
			return f, errno
		}
	}
	return nil, experimentalsys.EAGAIN
}

func (m *FS) openOnce(name string, flag experimentalsys.Oflag, perm fs.FileMode, write bool) (experimentalsys.File, Errno) {
	excl := flag&experimentalsys.O_CREAT != 0 && flag&experimentalsys.O_EXCL != 0
	var p place
	var st unix.Stat_t
	var missing bool
	var errno Errno
	if excl || flag&experimentalsys.O_NOFOLLOW != 0 {
		p, errno = m.walk(name)
		if errno != 0 {
			return nil, errno
		}
		switch errno = p.stat(&st); {
		case errno == experimentalsys.ENOENT:
			missing, errno = true, 0
		case errno != 0:
		case m.guard.hides(&st):
			errno = m.visible(name, &st)
		case excl:
			errno = experimentalsys.EEXIST
		case st.Mode&unix.S_IFMT == unix.S_IFLNK:
			errno = experimentalsys.ELOOP
		case p.slash && st.Mode&unix.S_IFMT != unix.S_IFDIR:
			errno = experimentalsys.ENOTDIR
		}
		if errno != 0 {
			p.close()
			return nil, errno
		}
	} else if p, st, missing, errno = m.follow(name); errno != 0 {
		return nil, errno
	}
	defer p.close()

	if missing {
		if flag&experimentalsys.O_CREAT == 0 {
			return nil, experimentalsys.ENOENT
		}
		return m.create(&p, name, flag, perm)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if write {
			return nil, experimentalsys.EISDIR
		}
		return m.openDir(&p, name, &st)
	case unix.S_IFREG:
		if flag&experimentalsys.O_DIRECTORY != 0 {
			return nil, experimentalsys.ENOTDIR
		}
	default:
		m.refuse(Read, name, "not a regular file or directory")
		return nil, experimentalsys.EACCES
	}
	if write && !m.writable {
		m.refuse(Write, name, "read-only mount")
		return nil, experimentalsys.EROFS
	}
	return m.openFile(&p, name, flag, &st, write)
}

// openFile opens a regular file that was just seen at p.
func (m *FS) openFile(p *place, name string, flag experimentalsys.Oflag, seen *unix.Stat_t, write bool) (experimentalsys.File, Errno) {
	if write {
		m.before(p, name)
		if foreign := m.foreignLinks(seen); foreign {
			if errno := m.unshare(p, seen, flag&experimentalsys.O_TRUNC != 0); errno != 0 {
				return nil, errno
			}
			// The name now stands for another inode.
			if errno := p.stat(seen); errno != 0 {
				return nil, errno
			}
		}
	}
	fd, errno := openat(p.fd, p.base, openFlags(flag, write), 0)
	if errno == experimentalsys.ENOENT || errno == experimentalsys.ELOOP {
		return nil, experimentalsys.EAGAIN // it was exchanged since we looked
	}
	if errno != 0 {
		return nil, errno
	}
	var st unix.Stat_t
	if errno := retry(func() error { return unix.Fstat(fd, &st) }); errno != 0 {
		unix.Close(fd)
		return nil, errno
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || inodeOf(&st) != inodeOf(seen) {
		unix.Close(fd)
		return nil, experimentalsys.EAGAIN
	}
	if why := m.foreign(fd); why != "" {
		unix.Close(fd)
		m.refuse(Read, name, why)
		return nil, experimentalsys.EACCES
	}
	f := &file{fs: m, fd: fd, path: name, size: st.Size, canRead: !write || flag&experimentalsys.O_WRONLY == 0,
		canWrite: write, id: inodeOf(&st)}
	if flag&experimentalsys.O_TRUNC != 0 {
		if errno := f.Truncate(0); errno != 0 {
			unix.Close(fd)
			return nil, errno
		}
	}
	if flag&experimentalsys.O_APPEND != 0 {
		if errno := f.SetAppend(true); errno != 0 {
			unix.Close(fd)
			return nil, errno
		}
	}
	if write {
		m.note(Write, name)
	} else {
		m.note(Read, name)
	}
	return f, 0
}

// create makes a regular file at p, where nothing is.
func (m *FS) create(p *place, name string, flag experimentalsys.Oflag, perm fs.FileMode) (experimentalsys.File, Errno) {
	if p.slash || p.base == "." {
		return nil, experimentalsys.EISDIR
	}
	if errno := m.mayCreate(p, Create, name); errno != 0 {
		return nil, errno
	}
	if !m.quota.takeFile() {
		m.refuse(Create, name, "limit of created files")
		return nil, EDQUOT
	}
	m.before(p, name)
	write := flag&(experimentalsys.O_RDWR|experimentalsys.O_WRONLY) != 0 || flag&experimentalsys.O_TRUNC != 0
	fd, errno := openat(p.fd, p.base, openFlags(flag, write)|unix.O_CREAT|unix.O_EXCL, uint32(perm.Perm()))
	if errno != 0 {
		m.quota.giveFile()
		if errno == experimentalsys.EEXIST && flag&experimentalsys.O_EXCL == 0 {
			return nil, experimentalsys.EAGAIN
		}
		return nil, errno
	}
	var st unix.Stat_t
	if errno := retry(func() error { return unix.Fstat(fd, &st) }); errno != 0 {
		unix.Close(fd)
		return nil, errno
	}
	f := &file{fs: m, fd: fd, path: name, canRead: !write || flag&experimentalsys.O_WRONLY == 0, canWrite: write,
		id: inodeOf(&st)}
	if flag&experimentalsys.O_APPEND != 0 {
		if errno := f.SetAppend(true); errno != 0 {
			unix.Close(fd)
			return nil, errno
		}
	}
	m.note(Create, name)
	return f, 0
}

// openDir opens a directory together with an FS of its own, so that what is later opened relative to it means this
// directory even when its name was given to another one meanwhile.
func (m *FS) openDir(p *place, name string, seen *unix.Stat_t) (experimentalsys.File, Errno) {
	full := p.dirPath
	if p.base != "." {
		full = p.dirPath + "/" + p.base
	}
	root, err := m.root.OpenRoot(full)
	if err != nil {
		return nil, m.openError(name, err)
	}
	top, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, m.openError(name, err)
	}
	sub := &FS{shared: m.shared, root: root, top: top, rel: joinRel(m.rel, name)}
	fd := int(top.Fd())
	var st unix.Stat_t
	errno := retry(func() error { return unix.Fstat(fd, &st) })
	switch {
	case errno != 0:
	case inodeOf(&st) != inodeOf(seen):
		errno = experimentalsys.EAGAIN
	case !m.guard.allows(fd):
		m.refuse(List, name, "private to the host")
		errno = experimentalsys.ENOENT
	default:
		if why := m.foreign(fd); why != "" {
			m.refuse(List, name, why)
			errno = experimentalsys.EACCES
		}
	}
	if errno != 0 {
		sub.Close()
		return nil, errno
	}
	m.note(List, name)
	return &Dir{fs: sub, fd: fd, name: name}, 0
}

func joinRel(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}

// openFlags never holds O_CREAT, O_TRUNC or O_APPEND: those are separate steps, taken once it is known what was
// opened. O_NONBLOCK keeps the open of a FIFO that appeared at the last moment from waiting.
func openFlags(flag experimentalsys.Oflag, write bool) int {
	mode := unix.O_RDONLY
	switch {
	case flag&experimentalsys.O_WRONLY != 0:
		mode = unix.O_WRONLY
	case write:
		mode = unix.O_RDWR
	}
	if flag&(experimentalsys.O_SYNC|experimentalsys.O_RSYNC) != 0 {
		mode |= unix.O_SYNC
	} else if flag&experimentalsys.O_DSYNC != 0 {
		mode |= unix.O_DSYNC
	}
	return mode | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
}

func openat(dir int, base string, flags int, perm uint32) (int, Errno) {
	fd := -1
	errno := retry(func() (err error) {
		fd, err = unix.Openat(dir, base, flags, perm)
		return err
	})
	return fd, errno
}

// mayCreate says whether a new name may come into being at p.
func (m *FS) mayCreate(p *place, action Action, name string) Errno {
	if !m.writable {
		m.refuse(action, name, "read-only mount")
		return experimentalsys.EROFS
	}
	if !m.guard.mayCreate(p.fd, p.base) {
		m.refuse(action, name, "private to the host")
		return experimentalsys.EACCES
	}
	return 0
}

// foreignLinks reports whether a file has names that were not made through this mount: they may lie outside.
func (m *FS) foreignLinks(st *unix.Stat_t) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(st.Nlink) > 1+m.linked[inodeOf(st)]
}

// unshare gives a name that shares its file with other names a file of its own: a copy in the same directory takes
// its place. Empty means that the content is about to be thrown away.
func (m *FS) unshare(p *place, seen *unix.Stat_t, empty bool) Errno {
	size := seen.Size
	if empty {
		size = 0
	}
	if !m.quota.takeAll(size) {
		return EDQUOT
	}
	src, errno := openat(p.fd, p.base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(src)
	tmp, dst, errno := temporary(p.fd)
	if errno != 0 {
		return errno
	}
	defer unix.Close(dst)
	if !empty {
		errno = copyFile(dst, src, seen.Size)
	}
	if errno == 0 {
		errno = retry(func() error { return unix.Fchmod(dst, uint32(seen.Mode)&0o7777) })
	}
	if errno == 0 {
		errno = retry(func() error { return unix.Renameat(p.fd, tmp, p.fd, p.base) })
	}
	if errno != 0 {
		unix.Unlinkat(p.fd, tmp, 0)
	}
	return errno
}

// temporary makes an empty file under a new name in a directory.
func temporary(dir int) (name string, fd int, errno Errno) {
	for range 100 {
		name = fmt.Sprintf(".atoll-%08x.tmp", unpredictable())
		fd, errno = openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if errno != experimentalsys.EEXIST {
			return name, fd, errno
		}
	}
	return "", -1, experimentalsys.EEXIST
}

func copyFile(dst, src int, size int64) Errno {
	buf := make([]byte, min(max(size, 1), 1<<18))
	var off int64
	for {
		n, errno := pread(src, buf, off)
		if errno != 0 {
			return errno
		}
		if n == 0 {
			return 0
		}
		if w, errno := pwrite(dst, buf[:n], off); errno != 0 || w < n {
			return max(errno, experimentalsys.EIO)
		}
		off += int64(n)
	}
}

// Sub returns an FS for a directory that was opened through this mount. It lives as long as the Dir.
func (d *Dir) Sub() *FS { return d.fs }
