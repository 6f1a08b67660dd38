//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"syscall"
)

func ownedByUs(st fs.FileInfo) bool {
	s, is := st.Sys().(*syscall.Stat_t)
	return is && int(s.Uid) == os.Geteuid()
}
