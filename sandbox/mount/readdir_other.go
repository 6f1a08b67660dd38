//go:build unix && !linux

package mount

import (
	"os"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

// Bounds of one directory listing.
const maxEntries = 1 << 20

// entries lists a directory without "." and "..". It opens the directory anew, so that listings through several
// descriptors do not share a position.
func (m *FS) entries(dir *os.File) ([]experimentalsys.Dirent, Errno) {
	fd, errno := openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, errno
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	names, err := f.Readdirnames(maxEntries + 1)
	if err != nil && len(names) == 0 && err.Error() != "EOF" {
		return nil, experimentalsys.EIO
	}
	if len(names) > maxEntries {
		return nil, EOVERFLOW
	}
	list := make([]experimentalsys.Dirent, 0, len(names))
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || m.guard.hides(&st) {
			continue
		}
		list = append(list, experimentalsys.Dirent{Ino: st.Ino, Name: name, Type: modeOf(uint32(st.Mode)).Type()})
	}
	return list, 0
}
