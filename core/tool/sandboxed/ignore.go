package sandboxed

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxIgnoreFile is how much of one .gitignore above the workspace is read.
	maxIgnoreFile = 64 << 10
	// maxParents is how far up a repository is looked for.
	maxParents = 64
)

// outerIgnore returns the ignore rules that hold in a workspace below the top of its git repository: the guest, which sees the
// workspace only, cannot read them. It is a sequence of records, those that count least first: byte 1, absolute folder, newline,
// text of the file. It is empty where the workspace is the top itself or in no repository.
func outerIgnore(workspace string) string {
	var above []string // the folders from the workspace's parent up to the top
	top := ""
	for dir := workspace; len(above) < maxParents; {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			top = dir
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		above = append(above, parent)
		dir = parent
	}
	if top == "" || top == workspace {
		return ""
	}
	var b strings.Builder
	add := func(dir, file string) {
		text := readRules(file)
		if text == "" || strings.ContainsAny(dir, "\x00\x01\n") {
			return
		}
		b.WriteString("\x01" + dir + "\n" + text)
	}
	add(top, filepath.Join(top, ".git", "info", "exclude"))
	slices.Reverse(above)
	for _, dir := range above {
		add(dir, filepath.Join(dir, ".gitignore"))
	}
	return b.String()
}

// readRules returns the beginning of a regular file, or "": like git, it does not follow a link.
func readRules(name string) string {
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return ""
	}
	return strings.NewReplacer("\x00", "", "\x01", "").Replace(string(text))
}
