// Package tools lists the tools of the multi-call module.
package tools

import (
	"atoll/tools-wasm/edit"
	"atoll/tools-wasm/glob"
	"atoll/tools-wasm/grep"
	"atoll/tools-wasm/internal/guest"
	"atoll/tools-wasm/ls"
	"atoll/tools-wasm/read"
	"atoll/tools-wasm/write"
)

// All returns the tools in the order in which the model is told about them.
func All() []*guest.Tool {
	return []*guest.Tool{read.Tool, write.Tool, edit.Tool, ls.Tool, glob.Tool, grep.Tool}
}
