// Package guest is the frame of every built-in tool: it declares arguments, decodes them strictly,
// resolves paths against the workspace and turns outcomes into exit codes.
//
// The wire form is that of every atoll tool module: the arguments are one JSON object on standard
// input, the result is text on standard output. Exit 0 is success; exit 1 is a failure with its
// message on standard error; exit 2 means that the arguments were malformed, the message names the
// argument and what was expected.
//
// The package avoids fmt, reflect and encoding/json: they would double the size of the module, which
// is compiled on first use and loaded on every start (see RATIONALE.md).
package guest

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"
)

// Exit codes of a tool module.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// maxInput bounds the JSON arguments, in bytes. The largest legitimate value is the content of a
// file that is to be written.
const maxInput = 16 << 20

// maxMessage bounds a failure message, in bytes: it ends up in a prompt.
const maxMessage = 4096

// A Tool is one built-in tool: what the model is told about it, and the function that runs it.
type Tool struct {
	// Name is also the argv[0] that selects the tool in the multi-call module.
	Name string
	// Description is one short line; it costs prompt tokens in every request.
	Description string
	// Params are the arguments in the order of the schema.
	Params []Param
	// Writes tells whether the tool may change files.
	Writes bool
	// Run does the work. The result goes to out only when Run returns nil: a failed call has no result.
	Run func(env Env, args Args, out io.Writer) error
}

// Env is what a tool may know about its surroundings.
type Env struct {
	// Dir is the workspace, an absolute clean path. Relative paths start here.
	Dir string
	// Ignore holds the ignore files that apply to the workspace but lie outside it, in the form that
	// package ignore documents. Empty: none.
	Ignore string
}

// IgnoreVar is the environment variable that carries Env.Ignore: toolabi.EnvIgnore, which is not imported because it
// would bring encoding/json into the module.
const IgnoreVar = "ATOLL_IGNORE"

// ArgError says that the arguments are malformed, as opposed to a call that failed.
type ArgError struct {
	Arg  string // name of the argument; empty when the whole object is meant
	Want string // what was expected
}

func (e *ArgError) Error() string {
	if e.Arg == "" {
		return "arguments: " + e.Want
	}
	return "argument " + Quote(e.Arg) + ": " + e.Want
}

// Call decodes the JSON arguments and runs the tool. The result is returned whole, so that a call
// that fails half way says nothing on out.
func (t *Tool) Call(env Env, input []byte) (string, error) {
	args, err := t.Decode(input)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	if err := t.Run(env, args, &out); err != nil {
		return "", err
	}
	return out.String(), nil
}

// Main runs the tool that args[0] names and returns the exit code.
func Main(tools []*Tool, args []string, env Env, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	defer func() {
		// Go's own exit code for a panic is 2, which would tell the model that its arguments were wrong.
		if r := recover(); r != nil {
			io.WriteString(stderr, "internal error: "+panicText(r)+"\n")
			code = ExitFailed
		}
	}()
	name := ""
	if len(args) > 0 {
		name = strings.TrimSuffix(path.Base(args[0]), ".wasm")
	}
	var tool *Tool
	for _, t := range tools {
		if t.Name == name {
			tool = t
		}
	}
	if tool == nil {
		io.WriteString(stderr, "no tool is called "+Quote(name)+"\n")
		return ExitUsage
	}
	input, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	if err == nil && len(input) > maxInput {
		err = &ArgError{Want: "more than 16 MiB"}
	}
	var result string
	if err == nil {
		result, err = tool.Call(env, input)
	}
	if err != nil {
		msg := err.Error()
		if len(msg) > maxMessage {
			msg = strings.ToValidUTF8(msg[:maxMessage], "") + "..."
		}
		io.WriteString(stderr, msg+"\n")
		var arg *ArgError
		if errors.As(err, &arg) {
			return ExitUsage
		}
		return ExitFailed
	}
	if !strings.HasSuffix(result, "\n") {
		result += "\n"
	}
	if _, err := io.WriteString(stdout, result); err != nil {
		io.WriteString(stderr, "write result: "+err.Error()+"\n")
		return ExitFailed
	}
	return ExitOK
}

// OSEnv is the Env of the running process: the working directory (PWD on WASI) and IgnoreVar.
func OSEnv() (Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Env{}, errors.New("find the workspace: " + err.Error())
	}
	return Env{Dir: path.Clean(dir), Ignore: os.Getenv(IgnoreVar)}, nil
}

func panicText(r any) string {
	switch v := r.(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	return "panic"
}
