//go:build unix

package mount

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"io/fs"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"
)

// file is an open regular file. The position is kept here and every transfer names its offset, so that the quota
// knows about holes before they are made.
type file struct {
	experimentalsys.UnimplementedFile
	fs   *FS
	fd   int // -1 once closed
	path string
	id   inode
	pos  int64
	// size is the length as last seen; the file may have grown since, never counted twice.
	size              int64
	canRead, canWrite bool
	append            bool
}

var _ experimentalsys.File = (*file)(nil)

func (f *file) Dev() (uint64, Errno)                          { return f.id.dev, 0 }
func (f *file) Ino() (wasys.Inode, Errno)                     { return f.id.ino, 0 }
func (f *file) IsDir() (bool, Errno)                          { return false, 0 }
func (f *file) IsAppend() bool                                { return f.append }
func (f *file) Readdir(int) ([]experimentalsys.Dirent, Errno) { return nil, experimentalsys.ENOTDIR }

// SetAppend makes every Write go to the end. The host's own flag is set too, so that an append is atomic with what
// other processes append.
func (f *file) SetAppend(enable bool) Errno {
	if f.fd < 0 {
		return experimentalsys.EBADF
	}
	return retry(func() error {
		flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		flags &^= unix.O_APPEND
		if enable {
			flags |= unix.O_APPEND
		}
		_, err = unix.FcntlInt(uintptr(f.fd), unix.F_SETFL, flags)
		if err == nil {
			f.append = enable
		}
		return err
	})
}

func (f *file) Stat() (wasys.Stat_t, Errno) {
	if f.fd < 0 {
		return wasys.Stat_t{}, experimentalsys.EBADF
	}
	return fstat(f.fd)
}

func (f *file) Read(buf []byte) (int, Errno) {
	n, errno := f.Pread(buf, f.pos)
	f.pos += int64(n)
	return n, errno
}

func (f *file) Pread(buf []byte, off int64) (int, Errno) {
	switch {
	case f.fd < 0 || !f.canRead:
		return 0, experimentalsys.EBADF
	case off < 0:
		return 0, experimentalsys.EINVAL
	case len(buf) == 0:
		return 0, 0
	}
	return pread(f.fd, buf, off)
}

// SeekTo does what Seek of experimental/sys.File is documented to do. It has a name of its own because `go vet` wants
// a method named Seek to return an error; Seek itself is not implemented.
func (f *file) SeekTo(offset int64, whence int) (int64, Errno) {
	if f.fd < 0 {
		return 0, experimentalsys.EBADF
	}
	base := int64(0)
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.pos
	case io.SeekEnd:
		st, errno := f.Stat()
		if errno != 0 {
			return 0, errno
		}
		base = st.Size
	default:
		return 0, experimentalsys.EINVAL
	}
	at := base + offset
	if at < 0 || offset > 0 && at < base {
		return 0, experimentalsys.EINVAL
	}
	f.pos = at
	return at, 0
}

func (f *file) Write(buf []byte) (int, Errno) {
	if !f.append {
		n, errno := f.Pwrite(buf, f.pos)
		f.pos += int64(n)
		return n, errno
	}
	if f.fd < 0 || !f.canWrite {
		return 0, experimentalsys.EBADF
	}
	n := f.fs.quota.takeBytes(int64(len(buf)))
	if n == 0 && len(buf) > 0 {
		return 0, f.full()
	}
	done := 0
	errno := retry(func() (err error) {
		done, err = unix.Write(f.fd, buf[:n])
		return err
	})
	done = max(done, 0)
	f.fs.quota.giveBytes(n - int64(done))
	if st, serr := f.Stat(); serr == 0 {
		f.size, f.pos = st.Size, st.Size
	}
	return done, errno
}

func (f *file) Pwrite(buf []byte, off int64) (int, Errno) {
	switch {
	case f.fd < 0 || !f.canWrite:
		return 0, experimentalsys.EBADF
	case off < 0:
		return 0, experimentalsys.EINVAL
	case len(buf) == 0:
		return 0, 0
	case off > (1<<62)-int64(len(buf)):
		return 0, EFBIG
	}
	if off > f.size {
		if st, errno := f.Stat(); errno == 0 {
			f.size = st.Size
		}
	}
	hole := max(0, off-f.size)
	if !f.fs.quota.takeAll(hole) {
		return 0, f.full()
	}
	n := f.fs.quota.takeBytes(int64(len(buf)))
	if n == 0 {
		f.fs.quota.giveBytes(hole)
		return 0, f.full()
	}
	done, errno := f.pwrite(buf[:n], off)
	f.fs.quota.giveBytes(n - int64(done))
	f.size = max(f.size, off+int64(done))
	return done, errno
}

// pwrite writes at an offset also when the descriptor appends: Linux then ignores the offset, so the flag is taken
// away for the moment.
func (f *file) pwrite(buf []byte, off int64) (int, Errno) {
	if f.append {
		if errno := f.SetAppend(false); errno != 0 {
			return 0, errno
		}
		defer f.SetAppend(true)
	}
	return pwrite(f.fd, buf, off)
}

// full records that a limit stopped the guest.
func (f *file) full() Errno {
	f.fs.refuse(Write, f.path, "limit of written bytes")
	return EDQUOT
}

func (f *file) Truncate(size int64) Errno {
	switch {
	case f.fd < 0 || !f.canWrite:
		return experimentalsys.EBADF
	case size < 0:
		return experimentalsys.EINVAL
	}
	st, errno := f.Stat()
	if errno != 0 {
		return errno
	}
	grown := max(0, size-st.Size)
	if !f.fs.quota.takeAll(grown) {
		return f.full()
	}
	errno = retry(func() error { return unix.Ftruncate(f.fd, size) })
	if errno != 0 {
		f.fs.quota.giveBytes(grown)
		return errno
	}
	f.size = size
	return 0
}

func (f *file) Sync() Errno {
	if f.fd < 0 {
		return experimentalsys.EBADF
	}
	return retry(func() error { return unix.Fsync(f.fd) })
}

func (f *file) Datasync() Errno { return f.Sync() }

func (f *file) Utimens(atim, mtim int64) Errno {
	switch {
	case f.fd < 0:
		return experimentalsys.EBADF
	case !f.fs.writable:
		f.fs.refuse(Times, f.path, "read-only mount")
		return experimentalsys.EROFS
	}
	var st unix.Stat_t
	if errno := retry(func() error { return unix.Fstat(f.fd, &st) }); errno != 0 {
		return errno
	}
	if f.fs.foreignLinks(&st) {
		f.fs.refuse(Times, f.path, "the file has names that may lie outside of the mount")
		return experimentalsys.EPERM
	}
	return futimes(f.fd, atim, mtim)
}

func (f *file) Close() Errno {
	if f.fd < 0 {
		return experimentalsys.EBADF
	}
	fd := f.fd
	f.fd = -1
	unix.Close(fd) // EINTR leaves the descriptor closed on Linux: never twice
	return 0
}

// dirBase answers what a directory cannot do; UnimplementedFile lies deeper, so that DirFile wins.
type dirBase struct {
	experimentalsys.DirFile
	unimplemented
}

type unimplemented struct {
	experimentalsys.UnimplementedFile
}

// Dir is an open directory.
type Dir struct {
	dirBase
	fs     *FS
	fd     int
	name   string
	closed bool
	list   []experimentalsys.Dirent // what Readdir has yet to return
	read   bool
}

var _ experimentalsys.File = (*Dir)(nil)

func (d *Dir) Dev() (uint64, Errno) {
	st, errno := d.Stat()
	return st.Dev, errno
}

func (d *Dir) Ino() (wasys.Inode, Errno) {
	st, errno := d.Stat()
	return st.Ino, errno
}

func (d *Dir) Stat() (wasys.Stat_t, Errno) {
	if d.closed {
		return wasys.Stat_t{}, experimentalsys.EBADF
	}
	return fstat(d.fd)
}

// Rewind makes Readdir start again.
func (d *Dir) Rewind() { d.list, d.read = nil, false }

// Readdir returns the entries that were there when the first call after opening or rewinding was made.
func (d *Dir) Readdir(n int) ([]experimentalsys.Dirent, Errno) {
	if d.closed {
		return nil, experimentalsys.EBADF
	}
	if !d.read {
		list, errno := d.fs.entries(d.fs.top)
		if errno != 0 {
			return nil, errno
		}
		d.list, d.read = list, true
	}
	if n <= 0 || n > len(d.list) {
		n = len(d.list)
	}
	out := d.list[:n]
	d.list = d.list[n:]
	return out, 0
}

func (d *Dir) Sync() Errno {
	if d.closed {
		return experimentalsys.EBADF
	}
	return retry(func() error { return unix.Fsync(d.fd) })
}

func (d *Dir) Datasync() Errno { return d.Sync() }

func (d *Dir) Utimens(atim, mtim int64) Errno {
	switch {
	case d.closed:
		return experimentalsys.EBADF
	case !d.fs.writable:
		d.fs.refuse(Times, d.name, "read-only mount")
		return experimentalsys.EROFS
	}
	return futimes(d.fd, atim, mtim)
}

func (d *Dir) Close() Errno {
	if d.closed {
		return experimentalsys.EBADF
	}
	d.closed = true
	d.fs.Close()
	return 0
}

func fstat(fd int) (wasys.Stat_t, Errno) {
	var st unix.Stat_t
	if errno := retry(func() error { return unix.Fstat(fd, &st) }); errno != 0 {
		return wasys.Stat_t{}, errno
	}
	return statOf(&st), 0
}

func statOf(st *unix.Stat_t) wasys.Stat_t {
	return wasys.Stat_t{
		Dev: uint64(st.Dev), Ino: st.Ino, Mode: modeOf(uint32(st.Mode)), Nlink: uint64(st.Nlink), Size: st.Size,
		Atim: st.Atim.Nano(), Mtim: st.Mtim.Nano(), Ctim: st.Ctim.Nano(),
	}
}

func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	default:
		mode |= fs.ModeIrregular
	}
	return mode
}

func pread(fd int, buf []byte, off int64) (n int, errno Errno) {
	errno = retry(func() (err error) {
		n, err = unix.Pread(fd, buf, off)
		return err
	})
	return max(n, 0), errno
}

// pwrite writes all of buf unless the host refuses.
func pwrite(fd int, buf []byte, off int64) (done int, errno Errno) {
	for done < len(buf) {
		var n int
		errno = retry(func() (err error) {
			n, err = unix.Pwrite(fd, buf[done:], off+int64(done))
			return err
		})
		if errno != 0 || n <= 0 {
			return done, errno
		}
		done += n
	}
	return done, 0
}

// futimes sets the times of an open file; a time of UTIME_OMIT stays.
func futimes(fd int, atim, mtim int64) Errno {
	var st unix.Stat_t
	if errno := retry(func() error { return unix.Fstat(fd, &st) }); errno != 0 {
		return errno
	}
	if atim == experimentalsys.UTIME_OMIT {
		atim = st.Atim.Nano()
	}
	if mtim == experimentalsys.UTIME_OMIT {
		mtim = st.Mtim.Nano()
	}
	tv := []unix.Timeval{unix.NsecToTimeval(atim), unix.NsecToTimeval(mtim)}
	return retry(func() error { return futimens(fd, atim, mtim, tv) })
}

func unpredictable() uint32 {
	var b [4]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint32(b[:])
}
