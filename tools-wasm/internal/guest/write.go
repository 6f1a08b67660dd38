package guest

import (
	"errors"
	"os"
)

// Replace changes the content of an existing file from old to content, in place: the inode, its mode,
// owner and hard links stay. Bytes before the first difference are not touched. When writing fails half
// way (a quota, a full disk) it tries to put the old content back.
//
// Why not a temporary file and a rename: see RATIONALE.md.
func Replace(abs string, old, content []byte) error {
	f, err := os.OpenFile(abs, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	same := 0
	for n := min(len(old), len(content)); same < n && old[same] == content[same]; {
		same++
	}
	err = rewrite(f, content, same)
	if err != nil {
		if again := rewrite(f, old, same); again != nil {
			err = errors.New(err.Error() + "; the file is damaged: putting back the old content: " + again.Error())
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func rewrite(f *os.File, content []byte, from int) error {
	if _, err := f.WriteAt(content[from:], int64(from)); err != nil {
		return err
	}
	return f.Truncate(int64(len(content)))
}
