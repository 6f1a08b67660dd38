package mount

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

// Bounds of one directory listing.
const (
	maxEntries    = 1 << 20
	maxEntryBytes = 64 << 20
)

// entries lists a directory without "." and "..". It opens the directory anew, so that listings through several
// descriptors do not share a position.
func (m *FS) entries(dir *os.File) ([]experimentalsys.Dirent, Errno) {
	fd, errno := openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, errno
	}
	defer unix.Close(fd)
	var list []experimentalsys.Dirent
	total := 0
	buf := make([]byte, 32<<10)
	for {
		var n int
		errno := retry(func() (err error) {
			n, err = unix.Getdents(fd, buf)
			return err
		})
		if errno != 0 {
			return nil, errno
		}
		if n <= 0 {
			return list, 0
		}
		// struct linux_dirent64 of getdents64(2): d_ino u64, d_off s64, d_reclen u16, d_type u8, d_name.
		for rec := buf[:n]; len(rec) >= 19; {
			length := int(binary.NativeEndian.Uint16(rec[16:]))
			if length < 19 || length > len(rec) {
				return nil, experimentalsys.EIO
			}
			name, _, _ := bytes.Cut(rec[19:length], []byte{0})
			ino, kind := binary.NativeEndian.Uint64(rec), rec[18]
			rec = rec[length:]
			if string(name) == "." || string(name) == ".." || m.guard.hidesEntry(m.where, ino) {
				continue
			}
			total += len(name)
			if len(list) >= maxEntries || total > maxEntryBytes {
				return nil, EOVERFLOW
			}
			d := experimentalsys.Dirent{Ino: ino, Name: string(name), Type: entryType(kind)}
			if kind == unix.DT_UNKNOWN {
				var st unix.Stat_t
				if unix.Fstatat(fd, d.Name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
					d.Type = modeOf(uint32(st.Mode)).Type()
				}
			}
			list = append(list, d)
		}
	}
}

func entryType(kind uint8) fs.FileMode {
	switch kind {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

// hidesEntry reports whether a directory entry is a hidden place of this mount.
func (g *guard) hidesEntry(where location, ino uint64) bool {
	return g != nil && len(g.hidden) > 0 && g.hidden[inode{where.dev, ino}]
}
