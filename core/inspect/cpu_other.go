//go:build !linux

package inspect

import "runtime"

// cpuName is the processor's family; its own name is not looked up here.
func cpuName() string { return runtime.GOARCH }
