// Command asmgen writes the assembly of kernels/cpu: the .s files and the Go
// declarations of their functions. Run it by go generate in kernels/cpu.
//
// Kernels are built as lists of instructions, one Go function for each shape of
// kernel, with the weight format and the number of columns as parameters.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// generate returns the text of every output file.
func generate() map[string]string {
	files := []*file{commonFile(), avx512File(), avx2File()}
	out := map[string]string{"stubs_amd64.go": pretty(stubs(files)), "tables_amd64.go": pretty(tables())}
	for _, f := range files {
		out[f.name] = f.asm()
	}
	return out
}

func main() {
	dir := flag.String("o", ".", "folder to write to")
	flag.Parse()
	for name, text := range generate() {
		if err := os.WriteFile(filepath.Join(*dir, name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "asmgen:", err)
			os.Exit(1)
		}
	}
}
