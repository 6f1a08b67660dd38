// Package store is the durable log under a session: numbered records in one pebble database per directory. It is the only
// package that knows pebble.
//
// Append returns after the records are synced; what it acknowledged survives a crash at any later moment. A store that met a
// write error (a full disk, an I/O error) refuses everything from then on with that error and never ends the process: see
// RATIONALE.md, "Why a guard around pebble?". A DB is safe for concurrent use; one process at a time holds it.
package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FormatVersion is written into every new store. It grows with each change of keys or of the records' meaning, and is never
// used again for something else.
//
//	1: key "m/format"; records under "e/" + big-endian uint64, from 1.
const FormatVersion = 1

// The errors that a caller decides by.
var (
	// ErrNotFound: there is no store in this directory.
	ErrNotFound = errors.New("no such store")
	// ErrLocked: another process, or another DB of this one, has it open.
	ErrLocked = errors.New("store is open elsewhere")
	// ErrDiskFull: no space left, or over quota. The store is closed to writers; free space and open it again.
	ErrDiskFull = errors.New("disk full")
	// ErrDamaged: the files are there and do not make sense.
	ErrDamaged = errors.New("store is damaged")
	// ErrNewer: the store was written by a later version of this program.
	ErrNewer = errors.New("store has a newer format")
	// ErrClosed: the DB was closed.
	ErrClosed = errors.New("store is closed")
	// ErrTooLarge: a record above MaxRecord.
	ErrTooLarge = errors.New("record is too large")
)

// MaxRecord is the largest record in bytes.
const MaxRecord = 64 << 20

// FS is the file system a store lives in.
type FS = vfs.FS

// Options configure Open.
type Options struct {
	// FS is the file system; nil means the operating system's.
	FS FS
	// Create makes a store where there is none. Without it Open answers ErrNotFound.
	Create bool
}

var (
	keyFormat  = []byte("m/format")
	keyRecords = []byte("e/")
	keyAfter   = []byte("e0") // '0' follows '/': the first key after all records
)

// DB is an open store.
type DB struct {
	guard *guard
	db    *pebble.DB
	lock  *pebble.Lock

	// mu makes appends take numbers in the order in which they are written. It guards next and closed.
	mu     sync.Mutex
	next   uint64 // number of the next record
	closed bool
}

// Open opens the store in dir.
func Open(dir string, opts Options) (*DB, error) {
	fsys := opts.FS
	if fsys == nil {
		fsys = vfs.Default
	}
	if opts.Create {
		if err := fsys.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open store: %w", classify(err))
		}
	} else if _, err := fsys.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open store: %w", ErrNotFound)
	}
	g := newGuard(fsys)
	d := &DB{guard: g}
	lock, err := pebble.LockDirectory(dir, g.fs())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", classifyLock(err))
	}
	d.lock = lock
	if err := d.open(dir, opts.Create); err != nil {
		d.shut()
		return nil, fmt.Errorf("open store: %w", err)
	}
	return d, nil
}

func (d *DB) open(dir string, create bool) error {
	err := d.guard.do(func() error {
		cache := pebble.NewCache(1 << 20)
		defer cache.Unref()
		db, err := pebble.Open(dir, pebbleOptions(d.guard, d.lock, cache, create))
		if err != nil {
			return classifyOpen(err)
		}
		d.guard.own(func() { d.db = db })
		return nil
	})
	if err != nil {
		return err
	}
	return d.guard.do(func() error { return d.prepare() })
}

// pebbleOptions returns the settings for a small append-only database.
func pebbleOptions(g *guard, lock *pebble.Lock, cache *pebble.Cache, create bool) *pebble.Options {
	o := &pebble.Options{
		Cache:              cache,
		FS:                 g.fs(),
		Lock:               lock,
		Logger:             g,
		ErrorIfNotExists:   !create,
		FormatMajorVersion: pebble.FormatFlushableIngest,
		// pebble preallocates its log at 1.1 times this size.
		MemTableSize:                512 << 10,
		MemTableStopWritesThreshold: 4,
		MaxOpenFiles:                64,
		EventListener: &pebble.EventListener{
			BackgroundError: g.fatal,
			DataCorruption:  func(i pebble.DataCorruptionInfo) { g.fatal(fmt.Errorf("%w: %v", ErrDamaged, i.Details)) },
		},
	}
	return o
}

// prepare checks the format version, or writes it into a new store, and finds the number of the next record.
func (d *DB) prepare() error {
	val, closer, err := d.db.Get(keyFormat)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		// New, or a crash between pebble's creation and this line.
		if err := d.db.Set(keyFormat, []byte(strconv.Itoa(FormatVersion)), pebble.Sync); err != nil {
			return classify(err)
		}
	case err != nil:
		return classifyOpen(err)
	default:
		v, perr := strconv.Atoi(string(val))
		if err := closer.Close(); err != nil {
			return classify(err)
		}
		if perr != nil || v < 1 {
			return fmt.Errorf("%w: format version is not a number", ErrDamaged)
		}
		if v > FormatVersion {
			return fmt.Errorf("%w: version %d, this program knows %d", ErrNewer, v, FormatVersion)
		}
	}
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: keyRecords, UpperBound: keyAfter})
	if err != nil {
		return classifyOpen(err)
	}
	d.next = 1
	if it.Last() {
		n, err := recordNumber(it.Key())
		if err != nil {
			_ = it.Close()
			return err
		}
		if n == math.MaxUint64 {
			_ = it.Close()
			return fmt.Errorf("%w: the record numbers are used up", ErrDamaged)
		}
		d.next = n + 1
	}
	if err := it.Close(); err != nil {
		return classifyOpen(err)
	}
	return nil
}

func recordKey(n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 10), keyRecords...), n)
}

func recordNumber(key []byte) (uint64, error) {
	if len(key) != len(keyRecords)+8 {
		return 0, fmt.Errorf("%w: record key of %d bytes", ErrDamaged, len(key))
	}
	return binary.BigEndian.Uint64(key[len(keyRecords):]), nil
}

// Next returns the number that the next record will get. The first record of a store has number 1.
func (d *DB) Next() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next
}

// Append writes the records as one atomic, synced batch and returns the number of the first. The slices are not kept.
// After an error nothing is known of the batch but that it was not acknowledged.
func (d *DB) Append(records ...[]byte) (first uint64, err error) {
	for _, r := range records {
		if len(r) > MaxRecord {
			return 0, fmt.Errorf("append %d bytes: %w", len(r), ErrTooLarge)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, fmt.Errorf("append: %w", ErrClosed)
	}
	if err := d.guard.err(); err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	// The batch copies the records here: after a fatal error the goroutine below may outlive this call.
	b := d.db.NewBatch()
	for i, r := range records {
		if err := b.Set(recordKey(d.next+uint64(i)), r, nil); err != nil {
			return 0, fmt.Errorf("append: %w", classify(err))
		}
	}
	if err := d.guard.do(func() error { return b.Commit(pebble.Sync) }); err != nil {
		return 0, fmt.Errorf("append: %w", classify(err))
	}
	first = d.next
	d.next += uint64(len(records))
	return first, nil
}

// chunkBytes is about how much Records reads at once.
const chunkBytes = 1 << 20

// Records calls fn for each record from number from on, in order. The slice is fn's to keep. An error of fn ends the walk and is
// returned as it is. Records that are appended during the walk may or may not be seen.
func (d *DB) Records(from uint64, fn func(n uint64, record []byte) error) error {
	for {
		d.mu.Lock()
		closed := d.closed
		d.mu.Unlock()
		if closed {
			return fmt.Errorf("read records: %w", ErrClosed)
		}
		chunk, err := d.chunk(from)
		if err != nil {
			return fmt.Errorf("read records: %w", classifyOpen(err))
		}
		if len(chunk) == 0 {
			return nil
		}
		for _, r := range chunk {
			if err := fn(r.n, r.data); err != nil {
				return err
			}
		}
		last := chunk[len(chunk)-1].n
		if last == math.MaxUint64 {
			return nil
		}
		from = last + 1
	}
}

type record struct {
	n    uint64
	data []byte
}

// chunk reads records from number from on, at least one where there is one.
func (d *DB) chunk(from uint64) ([]record, error) {
	result := make(chan []record, 1)
	err := d.guard.do(func() error {
		it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: recordKey(from), UpperBound: keyAfter})
		if err != nil {
			return err
		}
		var out []record
		size := 0
		for ok := it.First(); ok && size < chunkBytes; ok = it.Next() {
			n, err := recordNumber(it.Key())
			if err != nil {
				_ = it.Close()
				return err
			}
			out = append(out, record{n, bytes.Clone(it.Value())})
			size += len(it.Value())
		}
		if err := it.Close(); err != nil {
			return err
		}
		result <- out
		return nil
	})
	if err != nil {
		return nil, err
	}
	return <-result, nil
}

// Err returns the error that closed the store to writers, or nil.
func (d *DB) Err() error { return d.guard.err() }

// Close releases the store. It is safe to call twice.
func (d *DB) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	if err := d.shut(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// shut closes pebble, unless it is stuck in a fatal error, and gives the lock back. After a fatal error pebble's goroutines are
// parked for ever; the guard's file system lets none of them write again, so the lock may go.
func (d *DB) shut() error {
	var err error
	if d.guard.err() == nil && d.db != nil {
		err = d.guard.do(func() error { return d.db.Close() })
	}
	if lerr := d.guard.seal(); err == nil {
		err = lerr
	}
	return err
}

// classify gives err one of the package's categories where one fits.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case isCategory(err):
		return err
	case isDiskFull(err):
		return fmt.Errorf("%w: %v", ErrDiskFull, err)
	case errors.Is(err, pebble.ErrClosed):
		return ErrClosed
	default:
		return err
	}
}

// classifyOpen is classify for reading: what is not an error of the operating system is damage.
func classifyOpen(err error) error {
	var errno syscall.Errno
	switch c := classify(err); {
	case c == nil || isCategory(c):
		return c
	case errors.Is(err, pebble.ErrDBDoesNotExist):
		return ErrNotFound
	case errors.Is(err, fs.ErrNotExist), !errors.As(err, &errno):
		return fmt.Errorf("%w: %v", ErrDamaged, err)
	default:
		return err
	}
}

func classifyLock(err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES) && !errors.Is(err, fs.ErrNotExist) && !isPathError(err),
		strings.Contains(err.Error(), "lock held by current process"):
		return ErrLocked
	default:
		return classify(err)
	}
}

// isPathError tells an open(2) that was refused from a lock that is held: fcntl's EACCES comes without a path.
func isPathError(err error) bool {
	var pe *fs.PathError
	return errors.As(err, &pe)
}

func isCategory(err error) bool {
	for _, c := range []error{ErrNotFound, ErrLocked, ErrDiskFull, ErrDamaged, ErrNewer, ErrClosed, ErrTooLarge} {
		if errors.Is(err, c) {
			return true
		}
	}
	return false
}

// IsDiskFull reports whether an error of the operating system says that there is no space left.
func IsDiskFull(err error) bool { return isDiskFull(err) }

func isDiskFull(err error) bool {
	return vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT)
}
