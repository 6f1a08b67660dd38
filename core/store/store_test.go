package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func mustOpen(t *testing.T, dir string, o Options) *DB {
	t.Helper()
	d, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func records(t *testing.T, d *DB) []string {
	t.Helper()
	var out []string
	err := d.Records(1, func(n uint64, r []byte) error {
		if int(n) != len(out)+1 {
			t.Fatalf("record number %d after %d records", n, len(out))
		}
		out = append(out, string(r))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAppendAndReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	d := mustOpen(t, dir, Options{Create: true})
	if n, err := d.Append([]byte("a"), []byte("b")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := d.Append([]byte("c")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal("second close:", err)
	}
	if _, err := d.Append([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	d = mustOpen(t, dir, Options{})
	defer d.Close()
	if got := strings.Join(records(t, d), ""); got != "abc" {
		t.Fatal(got)
	}
	if d.Next() != 4 {
		t.Fatal(d.Next())
	}
}

func TestOpenErrors(t *testing.T) {
	tmp := t.TempDir()
	held := filepath.Join(tmp, "held")
	d := mustOpen(t, held, Options{Create: true})
	defer d.Close()
	newer := filepath.Join(tmp, "newer")
	n := mustOpen(t, newer, Options{Create: true})
	if err := n.db.Set(keyFormat, []byte("2"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	n.Close()
	if err := os.Mkdir(filepath.Join(tmp, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		opts Options
		want error
	}{
		{"absent", Options{}, ErrNotFound},
		{"empty", Options{}, ErrNotFound},
		{"held", Options{}, ErrLocked},
		{"held", Options{Create: true}, ErrLocked},
		{"newer", Options{}, ErrNewer},
		{"file", Options{Create: true}, syscall.ENOTDIR},
	} {
		if _, err := Open(filepath.Join(tmp, c.dir), c.opts); !errors.Is(err, c.want) {
			t.Errorf("%s %+v: %v, want %v", c.dir, c.opts, err, c.want)
		}
	}
}

// Every way of damaging one file of a closed store must give an open store or an error, never a panic or the end of the process.
func TestDamagedFiles(t *testing.T) {
	master := filepath.Join(t.TempDir(), "m")
	d := mustOpen(t, master, Options{Create: true})
	for i := range 40 {
		if _, err := d.Append(bytes.Repeat([]byte{byte(i)}, 20_000)); err != nil {
			t.Fatal(err)
		}
	}
	d.Close()
	files, err := os.ReadDir(master)
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string]func(b []byte) []byte{
		"empty":    func(b []byte) []byte { return nil },
		"halved":   func(b []byte) []byte { return b[:len(b)/2] },
		"garbage":  func(b []byte) []byte { return bytes.Repeat([]byte("garbage "), len(b)/8+1) },
		"flipped":  func(b []byte) []byte { b[len(b)/2] ^= 0x55; return b },
		"tail cut": func(b []byte) []byte { return b[:len(b)-1] },
	}
	opened, damaged := 0, 0
	for _, f := range files {
		for name, fn := range damages {
			dir := filepath.Join(t.TempDir(), "c")
			if err := os.CopyFS(dir, os.DirFS(master)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, f.Name())
			b, err := os.ReadFile(path)
			if err != nil || len(b) == 0 {
				continue
			}
			if err := os.WriteFile(path, fn(b), 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := Open(dir, Options{})
			if err == nil {
				err = d.Records(1, func(uint64, []byte) error { return nil })
				d.Close()
			}
			switch {
			case err == nil:
				opened++
			case errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotFound):
				damaged++
			default:
				t.Errorf("%s %s: %v", f.Name(), name, err)
			}
		}
	}
	if damaged == 0 || opened == 0 {
		t.Fatalf("opened %d, damaged %d: the test damages nothing or everything", opened, damaged)
	}
}

// Acknowledged means synced: whatever part of the unsynced data a crash keeps, every acknowledged record is there, in order.
func TestCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	fs := vfs.NewCrashableMem()
	d := mustOpen(t, "/s", Options{FS: fs, Create: true})
	var acked []string
	for i := range 300 {
		rec := strings.Repeat(fmt.Sprintf("record %d;", i), 1+rng.IntN(400))
		if _, err := d.Append([]byte(rec)); err != nil {
			t.Fatal(err)
		}
		acked = append(acked, rec)
		if i%7 != 0 {
			continue
		}
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		c := mustOpen(t, "/s", Options{FS: clone})
		got := records(t, c)
		if len(got) != len(acked) {
			t.Fatalf("after a crash %d records, %d acknowledged", len(got), len(acked))
		}
		for j := range acked {
			if got[j] != acked[j] {
				t.Fatalf("record %d differs after a crash", j+1)
			}
		}
		if _, err := c.Append([]byte("after")); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	d.Close()
}

// A crash while other goroutines append: the acknowledged records are a prefix of what is found.
func TestCrashUnderLoad(t *testing.T) {
	fs := vfs.NewCrashableMem()
	d := mustOpen(t, "/s", Options{FS: fs, Create: true})
	defer d.Close()
	var mu sync.Mutex
	var acked uint64
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				n, err := d.Append(fmt.Appendf(nil, "%d-%d", w, i))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked = max(acked, n)
				mu.Unlock()
			}
		})
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		mu.Lock()
		low := acked
		mu.Unlock()
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
		c, err := Open("/s", Options{FS: clone})
		if err != nil {
			t.Fatal(err)
		}
		if got := records(t, c); uint64(len(got)) < low {
			t.Fatalf("%d records, %d acknowledged", len(got), low)
		}
		c.Close()
	}
	wg.Wait()
}

// B055: the disk fills up at the n-th write. The store says so, the process lives, and after space is freed everything
// acknowledged is there.
func TestDiskFull(t *testing.T) {
	payload := bytes.Repeat([]byte("x"), 8<<10)
	for at := int32(0); at < 400; at += 7 {
		mem := vfs.NewMem()
		var full errorfs.Toggle
		full.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpRemove && op.Kind != errorfs.OpFileClose {
				return syscall.ENOSPC
			}
			return nil
		})
		var count int32
		inj := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				if count++; count == at {
					full.On()
				}
			}
			return full.MaybeError(op)
		})
		fs := errorfs.Wrap(mem, &serial{inj: inj})
		acked := 0
		d, err := Open("/s", Options{FS: fs, Create: true})
		for err == nil && acked < 200 {
			if _, err = d.Append(payload); err == nil {
				acked++
			}
		}
		if err == nil {
			d.Close()
			continue // the fault came after the last write
		}
		if !errors.Is(err, ErrDiskFull) {
			t.Fatalf("at write %d: %v", at, err)
		}
		if d != nil {
			if _, err := d.Append(payload); !errors.Is(err, ErrDiskFull) {
				t.Fatalf("at write %d, next append: %v", at, err)
			}
			if err := d.Close(); err != nil {
				t.Fatalf("at write %d, close: %v", at, err)
			}
		}
		d = mustOpen(t, "/s", Options{FS: mem, Create: true})
		if got := len(records(t, d)); got < acked {
			t.Fatalf("at write %d: %d records, %d acknowledged", at, got, acked)
		}
		if _, err := d.Append([]byte("go on")); err != nil {
			t.Fatal(err)
		}
		d.Close()
	}
}

// serial makes an injector safe for pebble's goroutines.
type serial struct {
	mu  sync.Mutex
	inj errorfs.Injector
}

func (s *serial) String() string { return "serial" }

func (s *serial) MaybeError(op errorfs.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inj.MaybeError(op)
}

// An I/O error that is not a full disk closes the store with that error.
func TestWriteError(t *testing.T) {
	var bad errorfs.Toggle
	bad.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData {
			return syscall.EIO
		}
		return nil
	})
	mem := vfs.NewMem()
	d := mustOpen(t, "/s", Options{FS: errorfs.Wrap(mem, &bad), Create: true})
	if _, err := d.Append([]byte("a")); err != nil {
		t.Fatal(err)
	}
	bad.On()
	if _, err := d.Append([]byte("b")); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := d.Err(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	d.Close()
	bad.Off()
	d = mustOpen(t, "/s", Options{FS: mem})
	defer d.Close()
	if got := records(t, d); len(got) < 1 || got[0] != "a" {
		t.Fatal(got)
	}
}

func TestTooLarge(t *testing.T) {
	d := mustOpen(t, "/s", Options{FS: vfs.NewMem(), Create: true})
	defer d.Close()
	if _, err := d.Append(make([]byte, MaxRecord+1)); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	big := make([]byte, 3<<20)
	if _, err := d.Append(big, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got := records(t, d); len(got) != 2 || len(got[0]) != len(big) {
		t.Fatal(len(got))
	}
}

func BenchmarkAppend(b *testing.B) {
	d, err := Open(filepath.Join(b.TempDir(), "s"), Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	rec := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Append(rec); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzRecordNumber(f *testing.F) {
	f.Add([]byte("e/\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Add([]byte("e/"))
	f.Fuzz(func(t *testing.T, key []byte) {
		n, err := recordNumber(key)
		if err == nil && bytes.HasPrefix(key, keyRecords) && !bytes.Equal(recordKey(n), key) {
			t.Fatalf("key %q is number %d", key, n)
		}
	})
}
