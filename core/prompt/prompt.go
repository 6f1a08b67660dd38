// Package prompt assembles the system prompt: embedded texts, the environment, and the project's own instructions.
//
// The prompt depends on nothing that changes from turn to turn (no time, no list of files), so that a model's prefix cache holds
// for the whole session. Nor does it depend on where the workspace lies: tools take relative paths, and a small model that sees a
// long absolute path copies it wrong.
package prompt

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
)

//go:embed system.txt
var systemText string

//go:embed write.txt
var writeText string

//go:embed readonly.txt
var readOnlyText string

//go:embed end.txt
var endText string

// Options are what the prompt depends on.
type Options struct {
	// OS is the operating system's name, such as "linux".
	OS string
	// CanWrite says whether the session may change files.
	CanWrite bool
	// Instructions are the project's; nil where it has none.
	Instructions *Instructions
}

// Build returns the system prompt.
func Build(o Options) string {
	var b strings.Builder
	b.WriteString(systemText)
	if o.CanWrite {
		b.WriteString(writeText)
	} else {
		b.WriteString(readOnlyText)
	}
	b.WriteString(endText)
	fmt.Fprintf(&b, "\nSystem: %s\n", o.OS)
	if in := o.Instructions; in != nil {
		fmt.Fprintf(&b, "\nInstructions of this project (%s):\n%s\n", in.Name, strings.TrimRight(in.Text, "\n"))
		if in.Cut {
			fmt.Fprintf(&b, "[%s is cut here: it is longer than %d bytes]\n", in.Name, MaxInstructions)
		}
	}
	return b.String()
}

// MaxInstructions is how many bytes of a project's instructions are shown to the model.
const MaxInstructions = 8 << 10

// Instructions are a project's instructions for assistants.
type Instructions struct {
	// Name is the file's name.
	Name string
	Text string
	// Cut says that the file is longer than MaxInstructions.
	Cut bool
}

// Notice tells the user what was left out; empty where nothing was.
func (in *Instructions) Notice() string {
	if in == nil || !in.Cut {
		return ""
	}
	return fmt.Sprintf("%s is longer than %d bytes: the model sees the beginning only", in.Name, MaxInstructions)
}

// LoadInstructions reads AGENTS.md of the workspace, or else CLAUDE.md. It returns nil where there is neither. Links that leave
// the workspace, and what is no regular file, are errors: the file's text goes to the model.
func LoadInstructions(workspace string) (*Instructions, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, fmt.Errorf("read instructions: %w", err)
	}
	defer root.Close()
	for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
		in, err := load(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read instructions: %w", err)
		}
		if strings.TrimSpace(in.Text) == "" {
			continue
		}
		return in, nil
	}
	return nil, nil
}

func load(root *os.Root, name string) (*Instructions, error) {
	// Without waiting for the writer of a FIFO.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxInstructions+1))
	if err != nil {
		return nil, err
	}
	in := &Instructions{Name: name}
	if len(b) > MaxInstructions {
		in.Cut = true
		b = b[:MaxInstructions]
		for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
		if n := len(b); n > 0 && b[n-1] >= utf8.RuneSelf {
			b = b[:n-1]
		}
	}
	b = []byte(strings.TrimPrefix(string(b), "\ufeff"))
	in.Text = strings.ToValidUTF8(string(b), "\ufffd")
	return in, nil
}
