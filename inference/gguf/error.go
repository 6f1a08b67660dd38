package gguf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrMissing is wrapped by the error of a getter whose key the file does not have.
var ErrMissing = errors.New("missing")

// Error is what is wrong with a model file, told in one line. Every error of this
// package is one, so that a caller can tell a bad model file from anything else.
type Error struct {
	Path   string // the file, as it was given to [Open]
	Key    string // "key NAME" or "tensor NAME"; empty if it is about the whole file
	Reason string // what is wrong and, where that helps, what would fix it
	Err    error  // the cause below, if there is one
}

func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("model file %s: %s", clean(e.Path, 1024), e.Reason)
	}
	return fmt.Sprintf("model file %s: %s: %s", clean(e.Path, 1024), e.Key, e.Reason)
}

func (e *Error) Unwrap() error { return e.Err }

// clean makes a name from outside safe for one line of a message: at most limit
// bytes, quoted if it holds anything that is not a plain printable character.
func clean(s string, limit int) string {
	cut := ""
	if len(s) > limit {
		s, cut = s[:limit], "..."
		for s != "" && !utf8.ValidString(s[len(s)-1:]) {
			s = s[:len(s)-1]
		}
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) || s == "" {
		s = strconv.Quote(s)
	}
	return s + cut
}

// maxShown is how much of a key or a tensor name a message shows.
const maxShown = 100

// KeyError returns an error about a metadata key, also for checks beyond this package.
func (f *File) KeyError(key, format string, args ...any) error {
	return &Error{Path: f.path, Key: "key " + clean(key, maxShown), Reason: fmt.Sprintf(format, args...)}
}

// TensorError returns an error about a tensor, also for checks beyond this package.
func (f *File) TensorError(name, format string, args ...any) error {
	return &Error{Path: f.path, Key: "tensor " + clean(name, maxShown), Reason: fmt.Sprintf(format, args...)}
}

func (f *File) fileErr(format string, args ...any) error {
	return &Error{Path: f.path, Reason: fmt.Sprintf(format, args...)}
}
