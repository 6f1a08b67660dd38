package sandbox

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
)

const pageBytes = 65536

// allocator gives a call's guest its memory. It reserves address space once, up to the limit, and never copies: a
// guest that grows step by step does not hold several copies of itself, and its memory is returned to the system as
// soon as the call ends.
type allocator struct {
	limit   uint64 // bytes
	regions [][]byte
	// refused says that the guest asked for more than the limit.
	refused bool
	err     error
}

var _ experimental.MemoryAllocator = (*allocator)(nil)

// Allocate implements experimental.MemoryAllocator.
func (a *allocator) Allocate(_, most uint64) experimental.LinearMemory {
	size := min(most, a.limit)
	if size == 0 {
		return &region{a: a}
	}
	b, err := reserve(size)
	if err != nil {
		a.err = fmt.Errorf("reserve %d bytes of memory: %w", size, err)
		return &region{a: a}
	}
	a.regions = append(a.regions, b)
	return &region{a: a, b: b}
}

// release returns the memory. No guest may run any more.
func (a *allocator) release() {
	for _, b := range a.regions {
		if err := unreserve(b); err != nil {
			panic(fmt.Sprintf("BUG: memory of a guest cannot be returned: %v", err))
		}
	}
	a.regions = nil
}

// region is one linear memory.
type region struct {
	a *allocator
	b []byte
}

// Reallocate implements experimental.LinearMemory: the address never changes.
func (r *region) Reallocate(size uint64) []byte {
	if size > uint64(len(r.b)) {
		r.a.refused = true
		return nil
	}
	if r.b == nil {
		return []byte{}
	}
	return r.b[:size:len(r.b)]
}

// Free implements experimental.LinearMemory. The engine does not call it after every kind of end, so that the
// allocator's release does the work.
func (r *region) Free() {}
