package mount

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// Bounds of what a Journal keeps.
const (
	// MaxImage is the most bytes of one file that are kept.
	MaxImage = 1 << 20
	// MaxImages is the most bytes of all files together.
	MaxImages = 16 << 20
	// MaxChanges is the most paths that are recorded.
	MaxChanges = 10000
)

// State is what a path held at one moment.
type State struct {
	Exists bool
	// Mode holds type and permission bits.
	Mode fs.FileMode
	// Size is the length of a regular file in bytes.
	Size int64
	// Data is the content of a regular file, or what a symbolic link says.
	Data []byte
	// Cut means that Data is missing, because the file is too large or too much was kept already.
	Cut bool
}

// Change is one path that the guest changed.
type Change struct {
	// Path is the absolute path on the host, without symbolic links in its directory part.
	Path string
	// Guest is the same place as the guest sees it.
	Guest string
	// Before is the state before the guest's first change, After the state when the call ended.
	Before, After State
}

// Journal records the first state of every path that the guest changes, independent of what the guest tells. It is
// safe for concurrent use. The zero value is ready.
type Journal struct {
	mu      sync.Mutex
	entries map[string]*entry // by host path
	bytes   int64
	cut     bool
}

type entry struct {
	guest  string
	before State
	after  func() State
}

// seen reports whether path needs no further record.
func (j *Journal) seen(path string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.entries[path] != nil
}

// record keeps the state of a path unless it is known. after is called when the call has ended.
func (j *Journal) record(path, guest string, before State, after func() State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.entries[path] != nil {
		return
	}
	if len(j.entries) >= MaxChanges {
		j.cut = true
		return
	}
	if j.entries == nil {
		j.entries = make(map[string]*entry)
	}
	j.bytes += int64(len(before.Data))
	j.entries[path] = &entry{guest: guest, before: before, after: after}
}

// room returns how many bytes of one more file may be kept.
func (j *Journal) room() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return min(MaxImage, MaxImages-j.bytes)
}

// Changes returns the paths whose state differs from before, sorted, and whether paths were left out because there
// were more than MaxChanges. It reads the final states, so it is called once the guest has ended and before its mounts
// are closed.
func (j *Journal) Changes() (changes []Change, cut bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for path, e := range j.entries {
		after := e.after()
		if e.before.same(after) {
			continue
		}
		changes = append(changes, Change{Path: path, Guest: e.guest, Before: e.before, After: after})
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, j.cut
}

func (s State) same(o State) bool {
	if s.Exists != o.Exists || s.Mode != o.Mode || s.Size != o.Size {
		return false
	}
	if !s.Exists || s.Mode.IsDir() {
		return true
	}
	// Content that was not kept may differ: it counts as changed.
	return !s.Cut && !o.Cut && string(s.Data) == string(o.Data)
}
