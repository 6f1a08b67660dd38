//go:build unix && !linux

package mount

import "golang.org/x/sys/unix"

// location identifies the file system that a directory is on.
type location struct{ dev uint64 }

func (m *FS) locate() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(m.top.Fd()), &st); err != nil {
		return err
	}
	m.where = location{dev: uint64(st.Dev)}
	return nil
}

// foreign says why an open file or directory is not part of the mount; "" when it is.
func (m *FS) foreign(fd int) string {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "its place cannot be told"
	}
	if uint64(st.Dev) != m.where.dev {
		return "another file system is mounted there"
	}
	return ""
}

// canonical is not known here; the path as the guest wrote it stands in for it.
func (m *FS) canonical(fd int) (abs, rel string, ok bool) { return "", "", false }
