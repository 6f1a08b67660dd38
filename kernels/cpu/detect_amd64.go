//go:build amd64 && !purego

package cpu

import (
	"fmt"
	"strings"

	"atoll/kernels"
)

// feature is one bit of the answer to CPUID.
type feature struct {
	name      string
	leaf, sub int
	reg       int // 0 eax, 1 ebx, 2 ecx, 3 edx
	bit       uint
	state     uint32 // what the operating system must save for it (XCR0)
}

const (
	stateAVX    = 0x06 // xmm, ymm
	stateAVX512 = 0xe6 // and masks, zmm
)

var avx2Features = []feature{
	{"FMA", 1, 0, 2, 12, stateAVX},
	{"F16C", 1, 0, 2, 29, stateAVX},
	{"AVX2", 7, 0, 1, 5, stateAVX},
}

var avx512Features = append(append([]feature(nil), avx2Features...),
	feature{"AVX512F", 7, 0, 1, 16, stateAVX512},
	feature{"AVX512DQ", 7, 0, 1, 17, stateAVX512},
	feature{"AVX512BW", 7, 0, 1, 30, stateAVX512},
	feature{"AVX512VL", 7, 0, 1, 31, stateAVX512},
	feature{"AVX512_VNNI", 7, 0, 2, 11, stateAVX512},
)

// missing names what the processor or the operating system lacks of a list.
func missing(list []feature) []string {
	var top, one [4]uint32
	var xcr0 uint32
	cpuid(&top[0], 0, 0)
	cpuid(&one[0], 1, 0)
	if one[2]&(1<<27) != 0 { // OSXSAVE
		xgetbv(&xcr0)
	}
	var names []string
	for _, f := range list {
		var regs [4]uint32
		if uint32(f.leaf) <= top[0] {
			cpuid(&regs[0], f.leaf, f.sub)
		}
		switch {
		case regs[f.reg]&(1<<f.bit) == 0:
			names = append(names, f.name)
		case xcr0&f.state != f.state:
			names = append(names, f.name+" (not enabled by the operating system)")
		}
	}
	return names
}

// Tiers returns the tiers that this processor can run, best first.
func Tiers() []string {
	var names []string
	for _, t := range tiers() {
		if len(missing(t.needs)) == 0 {
			names = append(names, t.name)
		}
	}
	return names
}

// pickTier returns the named tier, or the best one, and why.
func pickTier(name string) (*tier, string, error) {
	var reasons, names []string
	for _, t := range tiers() {
		names = append(names, t.name)
		if name != "" && name != t.name {
			continue
		}
		lack := missing(t.needs)
		switch {
		case len(lack) > 0:
			reasons = append(reasons, fmt.Sprintf("%s needs %s", t.name, strings.Join(lack, ", ")))
		case name != "":
			return t, "asked for", nil
		case len(reasons) > 0:
			return t, "best of this processor: " + strings.Join(reasons, "; "), nil
		default:
			return t, "best of this processor", nil
		}
	}
	if len(reasons) == 0 {
		return nil, "", fmt.Errorf("open cpu backend: unknown tier %q, want one of %s", name, strings.Join(names, ", "))
	}
	return nil, "", fmt.Errorf("open cpu backend: %s: %w", strings.Join(reasons, "; "), kernels.ErrUnavailable)
}
