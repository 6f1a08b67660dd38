//go:build amd64 && !purego

package cpu

import (
	"fmt"
	"sync"
)

// arenaChunk is how much an arena asks for at a time. Weights share chunks, so that
// huge pages waste the end of a chunk and not the end of every matrix.
const arenaChunk = 64 << 20

// arena hands out zeroed memory outside the Go heap, 64-byte aligned, until it is
// freed as a whole.
type arena struct {
	mu     sync.Mutex // guards the fields below; no kernel runs under it
	free   []byte
	chunks [][]byte
}

func (a *arena) alloc(n int) ([]byte, error) {
	n = (n + 63) &^ 63
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > len(a.free) {
		c, err := mapMemory(max(n, arenaChunk))
		if err != nil {
			return nil, fmt.Errorf("allocate %d bytes: %w", n, err)
		}
		a.chunks = append(a.chunks, c)
		if len(c)-n < len(a.free) { // keep the larger rest
			return c[:n:n], nil
		}
		a.free = c
	}
	m := a.free[:n:n]
	a.free = a.free[n:]
	return m, nil
}

func (a *arena) release() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var first error
	for _, c := range a.chunks {
		if err := unmapMemory(c); err != nil && first == nil {
			first = err
		}
	}
	a.free, a.chunks = nil, nil
	return first
}
