package toolabi

import (
	"errors"
	"fmt"
)

// ErrNoManifest means that a module carries no custom section named Section.
var ErrNoManifest = errors.New("module has no " + Section + " section")

// ManifestOf reads the manifest from a module's custom section. It walks section headers only, never allocates more
// than the section itself, and refuses a module whose sizes do not fit its bytes or that has the section twice.
func ManifestOf(wasm []byte) (Manifest, error) {
	data, err := CustomSection(wasm, Section)
	if err != nil {
		return Manifest{}, err
	}
	if data == nil {
		return Manifest{}, ErrNoManifest
	}
	return ParseManifest(data)
}

// CustomSection returns the content of the custom section of that name, nil when there is none.
func CustomSection(wasm []byte, name string) ([]byte, error) {
	if len(wasm) < 8 || string(wasm[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, errors.New("read module: not a WebAssembly 1 module")
	}
	var found []byte
	for at := 8; at < len(wasm); {
		id := wasm[at]
		size, n := uleb32(wasm[at+1:])
		if n == 0 || uint64(size) > uint64(len(wasm)-at-1-n) {
			return nil, fmt.Errorf("read module: section at byte %d is longer than the module", at)
		}
		body := wasm[at+1+n:][:size]
		at += 1 + n + int(size)
		if id != 0 {
			continue
		}
		length, n := uleb32(body)
		if n == 0 || uint64(length) > uint64(len(body)-n) {
			return nil, fmt.Errorf("read module: name of a custom section is longer than the section")
		}
		if string(body[n:n+int(length)]) != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("read module: section %s occurs twice", name)
		}
		found = append([]byte{}, body[n+int(length):]...)
	}
	return found, nil
}

// uleb32 reads an unsigned LEB128 of at most 32 bits; n is 0 when b does not start with one.
func uleb32(b []byte) (v uint32, n int) {
	for i := 0; i < len(b) && i < 5; i++ {
		if i == 4 && b[i] > 0x0f {
			return 0, 0
		}
		v |= uint32(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
