// Package modelstore keeps model files: which ones are known by name, where they
// lie, and how to fetch one.
//
// A store is one directory with one file for each model and, beside a file that
// was checked, a small JSON of its origin and sums (NAME.gguf.json). Files of any
// other origin may lie there too and are found by their name. The directory is
// shared by all processes of a user: fetching takes a lock file, works on a
// temporary name (NAME.gguf.part) and renames when the sum is right, so a model
// that has its final name is whole.
package modelstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"atoll/core/atomicfile"
)

// Options configure a store.
type Options struct {
	// Dir is the models directory. It need not exist until something is fetched.
	Dir string
	// Models replaces the catalogue. Zero: [Catalogue].
	Models []Model
}

// Store is a directory of models. It may be used from several goroutines, and
// several stores, in any number of processes, may share the directory.
type Store struct {
	dir    string
	models []Model
}

// New makes a store. It touches no file.
func New(o Options) *Store {
	if o.Models == nil {
		o.Models = Catalogue()
	}
	return &Store{dir: o.Dir, models: o.Models}
}

// Dir returns the models directory.
func (s *Store) Dir() string { return s.dir }

// Default returns the name that an empty reference means.
func (s *Store) Default() string {
	for _, m := range s.models {
		if m.Default {
			return m.Name
		}
	}
	return ""
}

// Lookup returns the catalogue's entry of that name; an empty name is the default.
func (s *Store) Lookup(name string) (Model, bool) {
	if name == "" {
		name = s.Default()
	}
	i := slices.IndexFunc(s.models, func(m Model) bool { return m.Name == name })
	if i < 0 {
		return Model{}, false
	}
	return s.models[i], true
}

// MissingError says that a model of the catalogue is not in the store.
// `atoll model pull NAME` would fetch it.
type MissingError struct {
	Name string
	Dir  string
	Size int64 // bytes to fetch
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("model %s: not in %s; fetch it (%s) with: atoll model pull %s; or give a GGUF file with -m PATH", e.Name, e.Dir, FormatBytes(e.Size), e.Name)
}

// UnknownError says that a reference is neither a file nor a known name.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("model %q: no such file and no such name; known names: %s", e.Name, strings.Join(e.Known, ", "))
}

// Resolve turns what a user wrote after -m into the path of a file: a path, a
// name of the catalogue, or the name of another file of the models directory
// (with or without .gguf). An empty reference means the default model. Errors
// are a [MissingError], an [UnknownError], or say what is wrong with the file.
func (s *Store) Resolve(ref string) (string, error) {
	if strings.ContainsRune(ref, 0) {
		return "", &UnknownError{Name: ref, Known: s.names()}
	}
	if m, ok := s.Lookup(ref); ok {
		path := filepath.Join(s.dir, m.File)
		st, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", &MissingError{Name: m.Name, Dir: s.dir, Size: m.Size}
		case err != nil:
			return "", fmt.Errorf("model %s: %w", m.Name, err)
		case !st.Mode().IsRegular():
			return "", fmt.Errorf("model %s: %s is not a regular file", m.Name, path)
		case st.Size() != m.Size:
			return "", fmt.Errorf("model %s: %s has %d bytes instead of %d; fetch it again with: atoll model pull %s", m.Name, path, st.Size(), m.Size, m.Name)
		}
		return path, nil
	}
	if st, err := os.Stat(ref); err == nil {
		if st.IsDir() {
			return "", fmt.Errorf("model %s: is a directory, not a GGUF file", ref)
		}
		return ref, nil
	}
	if strings.ContainsAny(ref, `/\`) {
		return "", fmt.Errorf("model %s: no such file", ref)
	}
	for _, file := range []string{ref, ref + ".gguf"} {
		path := filepath.Join(s.dir, file)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && isModelFile(file) {
			return path, nil
		}
	}
	return "", &UnknownError{Name: ref, Known: s.names()}
}

func (s *Store) names() []string {
	names := make([]string, len(s.models))
	for i, m := range s.models {
		names[i] = m.Name
	}
	return names
}

func isModelFile(name string) bool {
	return strings.HasSuffix(strings.ToLower(name), ".gguf") && !strings.HasPrefix(name, ".")
}

// Entry is one line of a list of models.
type Entry struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"` // empty: not there
	Size    int64  `json:"size"`           // bytes on disk, or to fetch
	Default bool   `json:"default,omitempty"`
	Present bool   `json:"present"`
	// Verified: the sum was checked and neither size nor time of the file changed since.
	Verified bool   `json:"verified"`
	Licence  string `json:"licence,omitempty"`
	Note     string `json:"note,omitempty"`
	Origin   string `json:"origin,omitempty"`
	// Problem says why a file that is there cannot be used; empty otherwise.
	Problem string `json:"problem,omitempty"`
}

// List returns the catalogue in its order, then the other model files of the
// directory by name. A directory that does not exist is empty.
func (s *Store) List() ([]Entry, error) {
	var list []Entry
	known := map[string]bool{}
	for _, m := range s.models {
		known[m.File] = true
		e := Entry{Name: m.Name, Size: m.Size, Default: m.Default, Licence: m.Licence, Note: m.Note}
		path := filepath.Join(s.dir, m.File)
		if st, err := os.Stat(path); err == nil {
			e.Present, e.Path, e.Size = true, path, st.Size()
			sc, ok := readSidecar(path)
			e.Verified = ok && sc.matches(m, st)
			e.Origin = sc.Origin
			if st.Size() != m.Size {
				e.Problem = fmt.Sprintf("has %d bytes instead of %d", st.Size(), m.Size)
			}
		}
		list = append(list, e)
	}
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list models: %w", err)
	}
	for _, f := range files {
		if known[f.Name()] || !isModelFile(f.Name()) {
			continue
		}
		path := filepath.Join(s.dir, f.Name())
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		list = append(list, Entry{Name: strings.TrimSuffix(f.Name(), ".gguf"), Path: path, Size: st.Size(), Present: true})
	}
	return list, nil
}

// Remove deletes a model's file and what was kept beside it, also what an
// unfinished fetch left. Only files of the models directory are deleted. The
// path of the model is returned.
func (s *Store) Remove(name string) (string, error) {
	if name == "" || strings.ContainsAny(name, "/\\\x00") {
		return "", &UnknownError{Name: name, Known: s.names()}
	}
	file := name
	if m, ok := s.Lookup(name); ok {
		file = m.File
	} else if !isModelFile(file) {
		file += ".gguf"
	}
	path := filepath.Join(s.dir, file)
	removed := false
	for _, p := range []string{path, sidecarPath(path), partPath(path)} {
		err := os.Remove(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("remove model %s: %w", name, err)
		}
		removed = removed || err == nil
	}
	if !removed {
		if m, ok := s.Lookup(name); ok {
			return "", &MissingError{Name: m.Name, Dir: s.dir, Size: m.Size}
		}
		return "", &UnknownError{Name: name, Known: s.names()}
	}
	return path, nil
}

// sidecar is the JSON beside a checked file.
type sidecar struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	MtimeNS int64  `json:"mtime_ns"` // of the model file when it was hashed
	Origin  string `json:"origin"`   // "hub: ...", "python packages: ...", "found"
	Licence string `json:"licence,omitempty"`
}

func sidecarPath(path string) string { return path + ".json" }
func partPath(path string) string    { return path + ".part" }

func (sc sidecar) matches(m Model, st fs.FileInfo) bool {
	return sc.SHA256 == m.SHA256 && sc.Size == st.Size() && st.Size() == m.Size && sc.MtimeNS == st.ModTime().UnixNano()
}

// readSidecar reads at most 64 KiB; anything that is not a sidecar counts as none.
func readSidecar(path string) (sidecar, bool) {
	f, err := os.Open(sidecarPath(path))
	if err != nil {
		return sidecar{}, false
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	n, _ := f.Read(b)
	var sc sidecar
	if json.Unmarshal(b[:n], &sc) != nil {
		return sidecar{}, false
	}
	return sc, true
}

func writeSidecar(path string, sc sidecar) error {
	b, err := json.MarshalIndent(sc, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(sidecarPath(path), append(b, '\n'), 0o644)
}

// FormatBytes writes a size for people: decimal units, one digit after the point.
func FormatBytes(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
