//go:build unix

package mount

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

// maxPath is the longest path that is looked at, in bytes.
const maxPath = 4096

// maxLinks is the most symbolic links that the last element of a path is followed through.
const maxLinks = 40

// place is a directory that is known to lie inside the mount, and a name in it.
type place struct {
	dir *os.File
	// own says that dir is closed with the place.
	own bool
	fd  int
	// base is one element: never empty, never with a slash; "." when the path names a directory as such.
	base string
	// slash says that the path ended in a slash: base must be a directory.
	slash bool
	// dirPath is the directory part of the path as it was walked, for resolving a relative link found at base.
	dirPath string
}

func (p *place) close() {
	if p.own {
		p.dir.Close()
	}
}

// walk opens the directory part of a path. It is the only way from a guest's path to a host's descriptor.
func (m *FS) walk(name string) (place, Errno) {
	switch {
	case name == "":
		return place{}, experimentalsys.ENOENT
	case len(name) > maxPath:
		return place{}, experimentalsys.ENAMETOOLONG
	case strings.IndexByte(name, 0) >= 0:
		return place{}, experimentalsys.EINVAL
	case name[0] == '/':
		m.refuse(Lookup, name, "absolute path")
		return place{}, experimentalsys.EPERM
	}
	p := place{slash: strings.HasSuffix(name, "/")}
	trimmed := strings.TrimRight(name, "/")
	dir, base := path.Split(trimmed)
	if base == "." || base == ".." {
		// The path names a directory by walking: all of it is the directory part.
		dir, base = trimmed, "."
	}
	if len(base) > 255 {
		return place{}, experimentalsys.ENAMETOOLONG
	}
	p.base, p.dirPath = base, strings.TrimRight(dir, "/")
	if p.dirPath == "" || p.dirPath == "." {
		p.dirPath = "."
		p.dir = m.top
	} else {
		d, err := m.root.OpenFile(p.dirPath, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
		if err != nil {
			return place{}, m.openError(name, err)
		}
		p.dir, p.own = d, true
	}
	p.fd = int(p.dir.Fd())
	if p.own {
		if why := m.foreign(p.fd); why != "" {
			p.close()
			m.refuse(Lookup, name, why)
			return place{}, experimentalsys.EACCES
		}
	}
	if !m.guard.allows(p.fd) {
		p.close()
		m.refuse(Lookup, name, "private to the host")
		return place{}, experimentalsys.ENOENT
	}
	return p, 0
}

// openError maps what os.Root says. An error without a system number means that the path would leave the directory.
func (m *FS) openError(name string, err error) Errno {
	var number unix.Errno
	if errors.As(err, &number) {
		return errnoOf(number)
	}
	if errors.Is(err, fs.ErrClosed) {
		return experimentalsys.EBADF
	}
	m.refuse(Lookup, name, "leaves the mount")
	return experimentalsys.EPERM
}

func (m *FS) refuse(action Action, name, why string) {
	m.audit.add(Event{Action: action, Path: m.guestPath(name), Refused: why})
}

func (m *FS) note(action Action, name string) {
	m.audit.add(Event{Action: action, Path: m.guestPath(name)})
}

// guestPath returns the absolute path that the guest meant.
func (m *FS) guestPath(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return path.Join(m.guest, m.rel, name)
}

// next returns the path that a symbolic link at p leads to.
func (p *place) next(target string) (string, Errno) {
	switch {
	case target == "":
		return "", experimentalsys.ENOENT
	case len(p.dirPath)+len(target) > maxPath:
		return "", experimentalsys.ENAMETOOLONG
	}
	next := target
	if target[0] != '/' && p.dirPath != "." {
		next = p.dirPath + "/" + target
	}
	if p.slash && !strings.HasSuffix(next, "/") {
		next += "/"
	}
	return next, 0
}

// follow walks to a path and, while its last element is a symbolic link, to where that leads. The result's base is
// no link at that moment; st is zero with missing set when nothing is there.
func (m *FS) follow(name string) (p place, st unix.Stat_t, missing bool, errno Errno) {
	for range maxLinks {
		p, errno = m.walk(name)
		if errno != 0 {
			return p, st, false, errno
		}
		errno = p.stat(&st)
		if errno == experimentalsys.ENOENT {
			return p, unix.Stat_t{}, true, 0
		}
		if errno != 0 {
			p.close()
			return p, st, false, errno
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			if errno = m.visible(name, &st); errno == 0 && p.slash && st.Mode&unix.S_IFMT != unix.S_IFDIR {
				errno = experimentalsys.ENOTDIR
			}
			if errno != 0 {
				p.close()
			}
			return p, st, false, errno
		}
		target, errno := p.readlink()
		if errno == 0 {
			name, errno = p.next(target)
		}
		p.close()
		if errno != 0 {
			return p, st, false, errno
		}
	}
	return p, st, false, experimentalsys.ELOOP
}

// visible refuses what lies at a path although its directory is inside: private places and other file systems.
func (m *FS) visible(name string, st *unix.Stat_t) Errno {
	if m.guard.hides(st) {
		m.refuse(Lookup, name, "private to the host")
		return experimentalsys.ENOENT
	}
	return 0
}

// stat asks about base itself, without following it.
func (p *place) stat(st *unix.Stat_t) Errno {
	return retry(func() error { return unix.Fstatat(p.fd, p.base, st, unix.AT_SYMLINK_NOFOLLOW) })
}

func (p *place) readlink() (string, Errno) {
	buf := make([]byte, maxPath)
	var n int
	errno := retry(func() (err error) {
		n, err = unix.Readlinkat(p.fd, p.base, buf)
		return err
	})
	if errno != 0 {
		return "", errno
	}
	if n == len(buf) {
		return "", experimentalsys.ENAMETOOLONG
	}
	return string(buf[:n]), 0
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) Errno {
	for {
		err := call()
		if err == nil {
			return 0
		}
		number, ok := err.(unix.Errno)
		if !ok {
			return experimentalsys.EIO
		}
		if number != unix.EINTR {
			return errnoOf(number)
		}
	}
}

// errnoOf maps the host's error numbers. What a guest has no use for is EIO.
func errnoOf(e unix.Errno) Errno {
	switch e {
	case 0:
		return 0
	case unix.EACCES:
		return experimentalsys.EACCES
	case unix.EAGAIN:
		return experimentalsys.EAGAIN
	case unix.EBADF:
		return experimentalsys.EBADF
	case unix.EEXIST:
		return experimentalsys.EEXIST
	case unix.EFAULT:
		return experimentalsys.EFAULT
	case unix.EINTR:
		return experimentalsys.EINTR
	case unix.EINVAL:
		return experimentalsys.EINVAL
	case unix.EISDIR:
		return experimentalsys.EISDIR
	case unix.ELOOP:
		return experimentalsys.ELOOP
	case unix.ENAMETOOLONG:
		return experimentalsys.ENAMETOOLONG
	case unix.ENOENT:
		return experimentalsys.ENOENT
	case unix.ENOTDIR:
		return experimentalsys.ENOTDIR
	case unix.ENOTEMPTY:
		return experimentalsys.ENOTEMPTY
	case unix.ENOTSUP:
		return experimentalsys.ENOTSUP
	case unix.EPERM:
		return experimentalsys.EPERM
	case unix.ERANGE:
		return experimentalsys.ERANGE
	case unix.EROFS:
		return experimentalsys.EROFS
	case unix.ENOSYS:
		return experimentalsys.ENOSYS
	case unix.EXDEV:
		return EXDEV
	case unix.EDQUOT:
		return EDQUOT
	case unix.ENOSPC:
		return ENOSPC
	case unix.EMFILE, unix.ENFILE:
		return EMFILE
	case unix.EFBIG:
		return EFBIG
	case unix.EBUSY:
		return EBUSY
	case unix.EMLINK:
		return EMLINK
	case unix.ETXTBSY:
		return ETXTBSY
	case unix.ENXIO:
		return ENXIO
	case unix.EOVERFLOW:
		return EOVERFLOW
	case unix.ENOMEM:
		return ENOMEM
	}
	return experimentalsys.EIO
}
