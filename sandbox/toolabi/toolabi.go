// Package toolabi is the contract between atoll and a tool module, used on both sides of the wall.
//
// A tool is a WASI preview 1 command module. It gets its arguments as one JSON object on standard input, writes its
// result to standard output and one line about a failure to standard error, and ends with one of the exit codes
// below. Argument 0 is the tool's name, so that one module can hold several tools. What a tool is called, which
// arguments it takes and what it asks for stands in its Manifest.
package toolabi

// Exit codes of a tool. Any other code than ExitOK is a failure.
const (
	// ExitOK: the result is on standard output.
	ExitOK = 0
	// ExitFailed: the tool could not do what was asked; standard error says why.
	ExitFailed = 1
	// ExitUsage: the arguments are malformed; standard error names the field and what was expected.
	ExitUsage = 2
)

// Names of environment variables that calls set.
const (
	// EnvWorkspace holds the absolute path of the workspace as the guest sees it, which is the working directory
	// that relative paths in arguments start from.
	EnvWorkspace = "PWD"
	// EnvIgnore holds the ignore rules that apply to the workspace but lie outside it: a sequence of records, those
	// that count least first, each byte 1, absolute folder, newline, text of the file.
	EnvIgnore = "ATOLL_IGNORE"
)

// Section is the name of the custom section of a module that holds its Manifest as JSON.
const Section = "atoll.tool"
