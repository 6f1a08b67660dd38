// Coretools is the module that holds the six file tools. The tool is chosen by argv[0], as in
// busybox: one module is compiled and cached once, and the Go runtime is in it once.
package main

import (
	"os"

	"atoll/tools-wasm/coretools/tools"
	"atoll/tools-wasm/internal/guest"
)

func main() {
	env, err := guest.OSEnv()
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(guest.ExitFailed)
	}
	os.Exit(guest.Main(tools.All(), os.Args, env, os.Stdin, os.Stdout, os.Stderr))
}
