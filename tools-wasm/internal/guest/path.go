package guest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"atoll/tools-wasm/internal/text"
)

// Resolve returns the absolute clean form of a path argument. It does not decide whether the path may
// be touched: the mounts do. A path that cannot be one is an *ArgError.
func (e Env) Resolve(arg, p string) (string, error) {
	switch {
	case p == "":
		return "", &ArgError{Arg: arg, Want: "expected a path, not an empty string"}
	case strings.IndexByte(p, 0) >= 0:
		return "", &ArgError{Arg: arg, Want: "expected a path without NUL characters"}
	case len(p) > 4096:
		return "", &ArgError{Arg: arg, Want: "expected a path of at most 4096 bytes"}
	case path.IsAbs(p):
		return path.Clean(p), nil
	}
	return path.Join(e.Dir, p), nil
}

// Inside tells whether the absolute clean path lies in the workspace, going by its name.
func (e Env) Inside(abs string) bool {
	return abs == e.Dir || e.Dir == "/" || strings.HasPrefix(abs, e.Dir+"/")
}

// Display returns the path as results and messages show it: relative to the workspace where it is
// inside, with control characters made visible.
func (e Env) Display(abs string) string {
	if abs == e.Dir {
		return "."
	}
	if e.Inside(abs) {
		abs = strings.TrimPrefix(strings.TrimPrefix(abs, e.Dir), "/")
	}
	return Visible(abs)
}

// Fail turns an error of the file system into a message for the model: "operation path: cause", with
// what would help. The error it was made from stays reachable by errors.Is.
func (e Env) Fail(op, abs string, err error) error {
	name := e.Display(abs)
	cause := ""
	switch {
	case !e.Inside(abs) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.EBADF) || errors.Is(err, syscall.EINVAL)):
		cause = "outside the workspace, which is " + Visible(e.Dir)
		if rel := strings.TrimPrefix(abs, "/"); rel != "" {
			if _, err := os.Lstat(path.Join(e.Dir, rel)); err == nil {
				cause += "; did you mean " + Visible(rel) + "?"
			}
		}
	case errors.Is(err, fs.ErrNotExist):
		cause = "no such file or directory" + e.similar(abs)
	case errors.Is(err, syscall.EROFS):
		cause = "read-only: this mode does not allow changes"
	case errors.Is(err, syscall.ENOTDIR):
		cause = "a part of the path is not a directory"
	case errors.Is(err, syscall.ELOOP):
		cause = "too many symbolic links"
	case errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG):
		cause = "the call may not write that much"
	case errors.Is(err, fs.ErrPermission):
		cause = "not permitted"
	default:
		var pe *fs.PathError
		if errors.As(err, &pe) {
			cause = pe.Err.Error()
		} else {
			cause = err.Error()
		}
	}
	return &failure{msg: op + " " + name + ": " + cause, err: err}
}

type failure struct {
	msg string
	err error
}

func (f *failure) Error() string { return f.msg }
func (f *failure) Unwrap() error { return f.err }

// similar lists names near the one that does not exist: the nearest ones of the same directory, or of
// the same name further up or down by one directory. Small models invent paths; a name to copy helps.
func (e Env) similar(abs string) string {
	dir, base := path.Split(abs)
	dir = path.Clean(dir)
	entries, err := readSome(dir, 1000)
	if err != nil {
		// The directory itself is missing: show what the nearest existing one holds.
		for e.Inside(dir) && dir != e.Dir {
			dir = path.Dir(dir)
			if entries, err = readSome(dir, 1000); err == nil {
				return "; " + e.Display(dir) + " has: " + listNames(entries)
			}
		}
		return ""
	}
	type scored struct {
		name string
		d    int
	}
	var near []scored
	low := strings.ToLower(base)
	for _, en := range entries {
		n := strings.ToLower(en.Name())
		d := distance(low, n)
		stem := strings.TrimSuffix(n, path.Ext(n))
		if d <= max(2, len(low)/3) || stem == strings.TrimSuffix(low, path.Ext(low)) || len(low) >= 3 && strings.Contains(n, low) {
			near = append(near, scored{en.Name(), d})
		}
	}
	if len(near) == 0 {
		if len(entries) == 0 {
			return ""
		}
		return "; " + e.Display(dir) + " has: " + listNames(entries)
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].d < near[j].d })
	names := make([]string, 0, 3)
	for _, n := range near[:min(3, len(near))] {
		names = append(names, e.Display(path.Join(dir, n.name)))
	}
	return "; similar: " + strings.Join(names, ", ")
}

func listNames(entries []fs.DirEntry) string {
	const most = 12
	var b strings.Builder
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	for i, en := range entries {
		if i == most {
			b.WriteString(", and " + strconv.Itoa(len(entries)-most) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Visible(en.Name()))
		if en.IsDir() {
			b.WriteByte('/')
		}
	}
	if len(entries) == 0 {
		return "nothing"
	}
	return b.String()
}

func readSome(dir string, n int) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(n)
	if len(entries) > 0 || errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// distance is the number of single-byte edits between two names, 64 where one is longer than that.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	return text.Distance([]byte(a), []byte(b))
}

// Visible returns s with control characters and bytes that are not UTF-8 written as escapes, so that
// a file name can neither drive a terminal nor look like another one.
func Visible(s string) string {
	clean := true
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || isBidi(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b []byte
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1, r < 0x20, r == 0x7f:
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'x', hex[s[i]>>4], hex[s[i]&15])
		case r >= 0x80 && r < 0xa0 || isBidi(r):
			u := strconv.FormatInt(int64(r), 16)
			b = append(b, `\u`+"0000"[min(4, len(u)):]+u...)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return string(b)
}

// isBidi tells whether r reorders the text around it.
func isBidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}

// Quote returns s in double quotes for a message, clipped and with control characters made visible.
func Quote(s string) string { return `"` + Visible(clip(s, 80)) + `"` }

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

// Size returns a number of bytes for people: "412 bytes", "1.5 MiB".
func Size(n int64) string {
	if n < 1024 {
		if n == 1 {
			return "1 byte"
		}
		return strconv.FormatInt(n, 10) + " bytes"
	}
	units, v := []string{"KiB", "MiB", "GiB", "TiB"}, float64(n)/1024
	i := 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + units[i]
}
