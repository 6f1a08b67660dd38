// Package grant holds the values that say what one sandboxed call may see and use: directories, environment,
// clock, random numbers and limits. A Grant is data; nothing here opens a file or checks that a path exists.
// Grants are compared, narrowed and printed; they are never widened.
package grant

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// Kind says what a guest may do below a mounted directory.
type Kind uint8

const (
	// ReadOnly lets the guest list and read. Every way of writing is refused.
	ReadOnly Kind = iota + 1
	// ReadWrite also lets the guest create, change and remove. Every change is recorded for the host.
	ReadWrite
)

// String returns "ro" or "rw".
func (k Kind) String() string {
	switch k {
	case ReadOnly:
		return "ro"
	case ReadWrite:
		return "rw"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind reads the text form of a Kind.
func ParseKind(s string) (Kind, error) {
	switch s {
	case "ro":
		return ReadOnly, nil
	case "rw":
		return ReadWrite, nil
	}
	return 0, fmt.Errorf("parse mount kind %q: want ro or rw", s)
}

// Mount makes one host directory visible to the guest.
type Mount struct {
	// Host is an absolute path of a directory on the host, in clean form.
	Host string
	// Guest is the absolute path under which the guest sees it; "" means the same as Host, so that messages of
	// a tool make sense to the user.
	Guest string
	Kind  Kind
}

// GuestPath returns Guest, or Host where Guest is empty.
func (m Mount) GuestPath() string {
	if m.Guest == "" {
		return m.Host
	}
	return m.Guest
}

// Limits bound one call. A zero field means the default of Defaults; Unlimited does not exist.
type Limits struct {
	// Wall is the time the call may take, from start to end, sleeps and host functions included.
	Wall time.Duration
	// MemoryPages is the most linear memory in pages of 64 KiB.
	MemoryPages uint32
	// OutputBytes bounds standard output; what is more is dropped and the result says so.
	OutputBytes int64
	// StderrBytes bounds standard error in the same way.
	StderrBytes int64
	// WrittenBytes bounds what the call writes to files, holes included.
	WrittenBytes int64
	// OpenFiles bounds the descriptors open at one moment, standard streams and mounts included.
	OpenFiles int
	// Files bounds the files, directories and links the call creates.
	Files int
}

// Defaults are the limits of a call that asks for nothing else.
func Defaults() Limits {
	return Limits{
		Wall:         10 * time.Second,
		MemoryPages:  4096, // 256 MiB
		OutputBytes:  1 << 20,
		StderrBytes:  64 << 10,
		WrittenBytes: 256 << 20,
		OpenFiles:    256,
		Files:        10000,
	}
}

// OrDefaults fills every zero field from Defaults.
func (l Limits) OrDefaults() Limits {
	d := Defaults()
	fill(&l.Wall, d.Wall)
	fill(&l.MemoryPages, d.MemoryPages)
	fill(&l.OutputBytes, d.OutputBytes)
	fill(&l.StderrBytes, d.StderrBytes)
	fill(&l.WrittenBytes, d.WrittenBytes)
	fill(&l.OpenFiles, d.OpenFiles)
	fill(&l.Files, d.Files)
	return l
}

func fill[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate reports a negative field.
func (l Limits) Validate() error {
	switch {
	case l.Wall < 0:
		return fmt.Errorf("limit wall: %v is negative", l.Wall)
	case l.MemoryPages > 65536:
		return fmt.Errorf("limit memory: %d pages are more than the 65536 of a 32-bit memory", l.MemoryPages)
	case l.OutputBytes < 0, l.StderrBytes < 0, l.WrittenBytes < 0:
		return fmt.Errorf("limit bytes: negative")
	case l.OpenFiles < 0, l.Files < 0:
		return fmt.Errorf("limit files: negative")
	}
	return nil
}

// min returns the smaller of each field; both sides count with their defaults filled in.
func (l Limits) min(o Limits) Limits {
	l, o = l.OrDefaults(), o.OrDefaults()
	return Limits{
		Wall:         min(l.Wall, o.Wall),
		MemoryPages:  min(l.MemoryPages, o.MemoryPages),
		OutputBytes:  min(l.OutputBytes, o.OutputBytes),
		StderrBytes:  min(l.StderrBytes, o.StderrBytes),
		WrittenBytes: min(l.WrittenBytes, o.WrittenBytes),
		OpenFiles:    min(l.OpenFiles, o.OpenFiles),
		Files:        min(l.Files, o.Files),
	}
}

// within reports whether no field of l is above that of o.
func (l Limits) within(o Limits) bool {
	return l.min(o) == l.OrDefaults()
}

// Grant is everything one call may see and use. The zero value grants nothing: no file, no environment, a clock
// that stands still and random numbers that are the same in every run.
type Grant struct {
	Mounts []Mount
	// Env holds KEY=VALUE; the guest sees no other variable.
	Env []string
	// Clock shows the true time. Without it the guest sees a coarse, deterministic one.
	Clock bool
	// Random gives unpredictable random numbers. Without it they come from a fixed seed.
	Random bool
	Limits Limits
}

// Validate reports a grant that cannot be used: a relative or unclean path, an unknown kind, two mounts under one
// guest path, a malformed variable, a negative limit.
func (g Grant) Validate() error {
	seen := make(map[string]bool, len(g.Mounts))
	for _, m := range g.Mounts {
		if m.Kind != ReadOnly && m.Kind != ReadWrite {
			return fmt.Errorf("mount %q: unknown kind %d", m.Host, m.Kind)
		}
		for _, p := range []string{m.Host, m.GuestPath()} {
			if err := checkPath(p); err != nil {
				return fmt.Errorf("mount %q: %w", m.Host, err)
			}
		}
		if seen[m.GuestPath()] {
			return fmt.Errorf("mount %q: guest path %q is taken", m.Host, m.GuestPath())
		}
		seen[m.GuestPath()] = true
	}
	for _, e := range g.Env {
		key, _, ok := strings.Cut(e, "=")
		if !ok || key == "" || strings.ContainsRune(e, 0) {
			return fmt.Errorf("environment %q: want KEY=VALUE", e)
		}
	}
	return g.Limits.Validate()
}

func checkPath(p string) error {
	switch {
	case !strings.HasPrefix(p, "/"):
		return fmt.Errorf("path %q is not absolute", p)
	case path.Clean(p) != p:
		return fmt.Errorf("path %q is not in clean form", p)
	case strings.ContainsRune(p, 0):
		return fmt.Errorf("path %q holds a NUL", p)
	}
	return nil
}

// Contains reports whether g allows everything that inner allows. Paths are compared as text; symbolic links are
// the business of the mount.
func (g Grant) Contains(inner Grant) bool {
	for _, m := range inner.Mounts {
		if !g.covers(m) {
			return false
		}
	}
	for _, e := range inner.Env {
		if !contains(g.Env, e) {
			return false
		}
	}
	return (g.Clock || !inner.Clock) && (g.Random || !inner.Random) && inner.Limits.within(g.Limits)
}

// covers reports whether some mount of g shows the directory of m, under the same guest path, with m's rights or
// more.
func (g Grant) covers(m Mount) bool {
	for _, o := range g.Mounts {
		if rest, ok := below(m.Host, o.Host); ok && path.Join(o.GuestPath(), rest) == m.GuestPath() && m.Kind <= o.Kind {
			return true
		}
	}
	return false
}

// below returns the part of p under dir.
func below(p, dir string) (rest string, ok bool) {
	if p == dir {
		return "", true
	}
	if dir == "/" {
		return p[1:], true
	}
	if rest, ok := strings.CutPrefix(p, dir+"/"); ok {
		return rest, true
	}
	return "", false
}

// Narrow returns what both g and by allow. The result is contained in each of them.
func (g Grant) Narrow(by Grant) Grant {
	out := Grant{
		Clock:  g.Clock && by.Clock,
		Random: g.Random && by.Random,
		Limits: g.Limits.min(by.Limits),
	}
	add := func(m Mount) {
		for _, o := range out.Mounts {
			if o.GuestPath() == m.GuestPath() {
				return
			}
		}
		out.Mounts = append(out.Mounts, m)
	}
	for _, a := range g.Mounts {
		for _, b := range by.Mounts {
			kind := min(a.Kind, b.Kind)
			am, bm := a, b
			am.Kind, bm.Kind = kind, kind
			// The deeper of two nested mounts is what both allow.
			if by.covers(am) {
				add(am)
			} else if g.covers(bm) {
				add(bm)
			}
		}
	}
	for _, e := range g.Env {
		if contains(by.Env, e) {
			out.Env = append(out.Env, e)
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}
