// Package storetest holds file systems for tests of what is built on core/store.
package storetest

import (
	"os"
	"sync/atomic"
	"syscall"

	"atoll/core/store"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is the operating system's file system with a switch: while Full is set, every write fails as on a full disk.
type Disk struct {
	vfs.FS
	Full atomic.Bool
	// FullAfter, when above 0, sets Full after that many more writes.
	FullAfter atomic.Int64
}

var _ store.FS = (*Disk)(nil)

// NewDisk returns a disk that has space.
func NewDisk() *Disk { return &Disk{FS: vfs.Default} }

func (d *Disk) write() error {
	if d.FullAfter.Load() > 0 && d.FullAfter.Add(-1) == 0 {
		d.Full.Store(true)
	}
	if d.Full.Load() {
		return syscall.ENOSPC
	}
	return nil
}

func (d *Disk) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &file{f, d}, nil
}

// Create implements vfs.FS.
func (d *Disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.write(); err != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: err}
	}
	return d.file(d.FS.Create(name, c))
}

// OpenReadWrite implements vfs.FS.
func (d *Disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.file(d.FS.OpenReadWrite(name, c, opts...))
}

// ReuseForWrite implements vfs.FS.
func (d *Disk) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.ReuseForWrite(oldname, newname, c))
}

type file struct {
	vfs.File
	d *Disk
}

func (f *file) Write(p []byte) (int, error) {
	if err := f.d.write(); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *file) Sync() error {
	if err := f.d.write(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *file) SyncData() error {
	if err := f.d.write(); err != nil {
		return err
	}
	return f.File.SyncData()
}
