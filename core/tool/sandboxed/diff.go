package sandboxed

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"atoll/sandbox"
	"atoll/sandbox/mount"

	"github.com/aymanbagabas/go-udiff"
)

// maxDiff bounds the diff of one call in bytes.
const maxDiff = 256 << 10

// diff returns a unified diff of what a call changed, as the mounts saw it. What cannot be shown as text is named in a line.
func diff(workspace string, res *sandbox.Result) string {
	changes := slices.Clone(res.Changes)
	slices.SortFunc(changes, func(a, b mount.Change) int { return strings.Compare(a.Path, b.Path) })
	var out strings.Builder
	for _, c := range changes {
		name := below(workspace, c.Path)
		text := fileDiff(name, c.Before, c.After)
		if out.Len()+len(text) > maxDiff {
			fmt.Fprintf(&out, "[the diff is cut before %s: it is too long]\n", name)
			return out.String()
		}
		out.WriteString(text)
	}
	if res.ChangesCut {
		out.WriteString("[there were more changes than are kept]\n")
	}
	return out.String()
}

// fileDiff returns the change of one path; "" where nothing that matters changed.
func fileDiff(name string, before, after mount.State) string {
	from, to := quote("a/"+name), quote("b/"+name)
	if !before.Exists {
		from = "/dev/null"
	}
	if !after.Exists {
		to = "/dev/null"
	}
	switch {
	case !before.Exists && !after.Exists:
		return ""
	case dir(before) || dir(after):
		return "" // the files in it speak for it
	case before.Cut || after.Cut:
		return fmt.Sprintf("--- %s\n+++ %s\n[not shown: too large, %d and %d bytes]\n", from, to, before.Size, after.Size)
	case link(before) || link(after):
		return fmt.Sprintf("--- %s\n+++ %s\n[symbolic link: %q, was %q]\n", from, to, after.Data, before.Data)
	case bytes.Equal(before.Data, after.Data) && before.Exists == after.Exists:
		if before.Mode == after.Mode {
			return ""
		}
		return fmt.Sprintf("--- %s\n+++ %s\n[mode %v, was %v]\n", from, to, after.Mode, before.Mode)
	case bytes.IndexByte(before.Data, 0) >= 0 || bytes.IndexByte(after.Data, 0) >= 0:
		return fmt.Sprintf("--- %s\n+++ %s\n[binary: %d bytes, was %d]\n", from, to, after.Size, before.Size)
	case len(before.Data) == 0 && len(after.Data) == 0:
		return fmt.Sprintf("--- %s\n+++ %s\n[empty file]\n", from, to)
	default:
		return udiff.Unified(from, to, string(before.Data), string(after.Data))
	}
}

// quote writes a name as git does: in quotes where it holds characters that would break the line.
func quote(name string) string {
	for _, r := range name {
		if r < 0x20 || r == 0x7f || r == '"' || r == '\\' || r == utf8.RuneError {
			return strconv.Quote(name)
		}
	}
	return name
}

func dir(s mount.State) bool  { return s.Exists && s.Mode.IsDir() }
func link(s mount.State) bool { return s.Exists && s.Mode.Type() == fs.ModeSymlink }
