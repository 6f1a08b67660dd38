// Package mount makes one host directory visible to a guest as an experimental/sys.FS of wazero, and keeps the guest
// inside it.
//
// What holds for every FS, whatever the guest or other processes on the host do at the same time:
//
//   - A path reaches only what lies below the mounted directory, on the same mount of the host. "..", absolute paths,
//     symbolic links (also ones that are made, changed or moved meanwhile) and file systems mounted below do not lead
//     out; links that stay inside work.
//   - Only regular files and directories are opened. Devices, FIFOs and sockets are refused, and opening one never
//     waits.
//   - A read-only mount answers EROFS for every way of writing.
//   - Writing to a file that has other names (hard links) first gives the path a file of its own, so that a name
//     outside of the mount never changes.
//   - Private directories of the host (see Options) do not exist for the guest, and nothing can be put in their place.
//
// Names are bytes: they need not be UTF-8. An FS is used by one guest at a time; several FS may share one directory.
package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"atoll/sandbox/grant"
)

// ErrUnavailable means that this operating system has no confined mounts in this version.
var ErrUnavailable = errors.New("confined mounts are not available on this operating system")

// Options say what is mounted and what is recorded. Nil Quota, Journal and Audit count and record nothing.
type Options struct {
	Mount grant.Mount
	// Quota is shared by the mounts of one call.
	Quota *Quota
	// Journal gets the state of everything that the guest changes, from before the first change.
	Journal *Journal
	// Audit gets every path that was opened or changed and every refusal.
	Audit *Audit
	// Private are host directories or files that must stay out of reach even when the mount contains them: places
	// whose content the host later executes or obeys, such as the cache of compiled code.
	Private []string
}

// FS is a mounted directory. It implements experimental/sys.FS; paths are relative to the directory, and a path that
// starts with "/" is refused.
type FS struct {
	experimentalsys.UnimplementedFS
	*shared
	root *os.Root
	// top is the open directory that root stands for.
	top *os.File
	// rel is the path below the mount under which this directory was opened, "" at the top. For messages only: it
	// goes stale when somebody renames the directory.
	rel string
}

// shared is what all FS of one mount have in common.
type shared struct {
	host     string // canonical: no symbolic links
	guest    string
	writable bool
	quota    *Quota
	journal  *Journal
	audit    *Audit
	guard    *guard
	where    location

	// main is the FS of the mounted directory itself.
	main *FS

	mu sync.Mutex // guards linked
	// linked counts the hard links made through this mount, by inode, so that they do not count as foreign.
	linked map[inode]uint64
}

// inode identifies a file on this host.
type inode struct{ dev, ino uint64 }

var _ experimentalsys.FS = (*FS)(nil)

// New mounts a directory. The caller closes the FS.
func New(o Options) (*FS, error) {
	m := o.Mount
	if err := (grant.Grant{Mounts: []grant.Mount{m}}).Validate(); err != nil {
		return nil, err
	}
	host, err := filepath.EvalSymlinks(m.Host)
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", m.Host, cause(err))
	}
	root, err := os.OpenRoot(host)
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", m.Host, cause(err))
	}
	top, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("mount %s: %w", m.Host, cause(err))
	}
	f := &FS{root: root, top: top, shared: &shared{
		host:     host,
		guest:    m.GuestPath(),
		writable: m.Kind == grant.ReadWrite,
		quota:    o.Quota,
		journal:  o.Journal,
		audit:    o.Audit,
		linked:   make(map[inode]uint64),
	}}
	f.main = f
	if err := f.locate(); err != nil {
		f.Close()
		return nil, fmt.Errorf("mount %s: %w", m.Host, err)
	}
	f.guard, err = newGuard(host, o.Private)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("mount %s: %w", m.Host, err)
	}
	return f, nil
}

// cause strips the path that the caller's message already names.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Close releases the directory. Files that were opened through the FS stay open until they are closed.
func (m *FS) Close() error {
	return errors.Join(m.top.Close(), m.root.Close())
}

// Guest returns the path of the mount as the guest sees it.
func (m *FS) Guest() string { return m.guest }

// Same reports whether both belong to one mount, so that renames and links between them can work.
func (m *FS) Same(o *FS) bool { return m.shared == o.shared }
