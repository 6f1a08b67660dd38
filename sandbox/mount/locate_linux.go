package mount

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// location identifies the mount of the host that a directory is on.
type location struct {
	mount uint64 // mount id, 0 when the kernel does not tell (before 5.8)
	dev   uint64
}

// pseudo are file systems whose files are not data: opening, reading or following one acts on the system.
var pseudo = map[uint32]string{
	unix.PROC_SUPER_MAGIC:      "proc",
	unix.SYSFS_MAGIC:           "sysfs",
	unix.DEVPTS_SUPER_MAGIC:    "devpts",
	unix.DEBUGFS_MAGIC:         "debugfs",
	unix.TRACEFS_MAGIC:         "tracefs",
	unix.SECURITYFS_MAGIC:      "securityfs",
	unix.CGROUP_SUPER_MAGIC:    "cgroup",
	unix.CGROUP2_SUPER_MAGIC:   "cgroup2",
	unix.BPF_FS_MAGIC:          "bpf",
	unix.BINDERFS_SUPER_MAGIC:  "binderfs",
	unix.EFIVARFS_MAGIC:        "efivarfs",
	unix.NSFS_MAGIC:            "nsfs",
	unix.SELINUX_MAGIC:         "selinuxfs",
	unix.BINFMTFS_MAGIC:        "binfmt_misc",
	unix.RDTGROUP_SUPER_MAGIC:  "resctrl",
	unix.FUTEXFS_SUPER_MAGIC:   "futexfs",
	unix.PIPEFS_MAGIC:          "pipefs",
	unix.SOCKFS_MAGIC:          "sockfs",
	unix.ANON_INODE_FS_MAGIC:   "anon_inode",
	unix.HUGETLBFS_MAGIC:       "hugetlbfs",
	unix.PSTOREFS_MAGIC:        "pstore",
	unix.AUTOFS_SUPER_MAGIC:    "autofs",
	unix.USBDEVICE_SUPER_MAGIC: "usbfs",
}

func (m *FS) locate() error {
	fd := int(m.top.Fd())
	var sfs unix.Statfs_t
	if err := unix.Fstatfs(fd, &sfs); err != nil {
		return err
	}
	if name, ok := pseudo[uint32(sfs.Type)]; ok {
		return fmt.Errorf("a %s file system holds no data to work on", name)
	}
	where, err := locationOf(fd)
	if err != nil {
		return err
	}
	m.where = where
	return nil
}

func locationOf(fd int) (location, error) {
	var stx unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stx)
	if err == nil {
		l := location{dev: unix.Mkdev(stx.Dev_major, stx.Dev_minor)}
		if stx.Mask&unix.STATX_MNT_ID != 0 {
			l.mount = stx.Mnt_id
		}
		return l, nil
	}
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return location{}, err
	}
	// Kernels before 4.11, and containers whose filter forbids statx.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return location{}, err
	}
	return location{dev: uint64(st.Dev)}, nil
}

// foreign says why an open file or directory is not part of the mount; "" when it is.
func (m *FS) foreign(fd int) string {
	l, err := locationOf(fd)
	if err != nil {
		return "its place cannot be told"
	}
	if l.mount != 0 && m.where.mount != 0 {
		if l.mount != m.where.mount {
			return "another file system is mounted there"
		}
		return ""
	}
	if l.dev != m.where.dev {
		return "another file system is mounted there"
	}
	return ""
}

// canonical returns the host path of an open directory, without symbolic links, and the path below the mount.
func (m *FS) canonical(fd int) (abs, rel string, ok bool) {
	buf := make([]byte, 2*maxPath)
	n, err := unix.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd), buf)
	if err != nil || n == len(buf) {
		return "", "", false
	}
	abs = string(buf[:n])
	if abs == m.host {
		return abs, "", true
	}
	if m.host == "/" {
		return abs, abs[1:], true
	}
	rel, ok = strings.CutPrefix(abs, m.host+"/")
	return abs, rel, ok
}
