//go:build !unix

package mount

import (
	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
)

type (
	guard    struct{}
	location struct{}
)

func newGuard(string, []string) (*guard, error) { return nil, ErrUnavailable }

func (m *FS) locate() error { return ErrUnavailable }

// RenameTo is not available on this operating system.
func (m *FS) RenameTo(string, *FS, string) Errno { return experimentalsys.ENOSYS }

// LinkTo is not available on this operating system.
func (m *FS) LinkTo(string, *FS, string) Errno { return experimentalsys.ENOSYS }

// SetTimes is not available on this operating system.
func (m *FS) SetTimes(string, int64, int64, bool) Errno { return experimentalsys.ENOSYS }

// Dir is an open directory; there is none on this operating system.
type Dir struct {
	experimentalsys.UnimplementedFile
}

// Sub returns an FS for the directory.
func (d *Dir) Sub() *FS { return nil }

// Rewind makes Readdir start again.
func (d *Dir) Rewind() {}
