package lint

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// SoftCap is the number of lines from which a Go file should be split. It is a
// note, not an error: a table may be long.
const SoftCap = 600

// banned holds texts that belong to one machine or one network and so to no
// file of the repository. They are put together here so that this file passes.
var banned = []string{
	"/wor" + "k/",
	"/roo" + "t/",
	"pypi" + ".org",
	"pythonhosted" + ".org",
	"proxy.golang" + ".org",
	"sum.golang" + ".org",
	"registry.npmjs" + ".org",
	"index.crates" + ".io",
}

// CheckFile returns a line for each text in a file that may not be there.
func CheckFile(name string, data []byte) []string {
	if path.Base(name) == "go.sum" || bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return nil
	}
	var bad []string
	for i, line := range strings.Split(string(data), "\n") {
		for _, b := range banned {
			at := strings.Index(line, b)
			// "../work/" and "homework/" are other folders.
			if at < 0 || (b[0] == '/' && at > 0 && (isWord(line[at-1]) || line[at-1] == '.')) {
				continue
			}
			bad = append(bad, fmt.Sprintf("%s:%d: holds %q", name, i+1, b))
		}
	}
	return bad
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
