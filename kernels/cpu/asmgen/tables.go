package main

import (
	"fmt"
	gofmt "go/format"
	"strings"
)

// directWidths and gemmWidths are the numbers of columns that matrix kernels exist
// for; AVX2 has direct kernels for one column only.
var (
	directWidths = []int{1, 4}
	gemmWidths   = []int{4, 8, 12}
)

// tables prints the Go functions that list the kernels of each tier.
func tables() string {
	var b strings.Builder
	b.WriteString(header + "package cpu\n\nimport \"atoll/kernels/quant\"\n")
	for _, t := range []struct {
		fn, name, needs string
		v               vector
	}{{"avx512Tier", "tierAVX512", "avx512Features", vec512}, {"avx2Tier", "tierAVX2", "avx2Features", vec256}} {
		out := func(f string, args ...any) { fmt.Fprintf(&b, f+"\n", args...) }
		out("\n// %s lists the kernels of %s.\nfunc %s() *tier {\nreturn &tier{\nname: %s,\nneeds: %s,\nlanes: %d,", t.fn, t.name, t.fn, t.name, t.needs, t.v.lanes)
		out("direct: map[quant.Format]map[int]directKernel{")
		for _, f := range formats {
			fmt.Fprintf(&b, "quant.%s: {", f.name)
			for _, w := range directWidths {
				if t.v.lanes == 8 && w > 1 {
					continue
				}
				fmt.Fprintf(&b, "%d: direct%sx%d_%s,", w, f.name, w, t.v.tag)
			}
			out("},")
		}
		widest := directWidths[len(directWidths)-1]
		if t.v.lanes == 8 {
			widest = 1
		}
		out("},\ndirectCols: %d,\nunpack: map[quant.Format]unpackKernel{", widest)
		for _, f := range formats {
			out("quant.%s: unpack%s_%s,", f.name, f.name, t.v.tag)
		}
		out("},\ngemm: map[quant.Format]map[int]gemmKernel{")
		for _, f := range formats {
			k := f.kind512()
			if t.v.lanes == 8 {
				k = f.kind256().name
			}
			fmt.Fprintf(&b, "quant.%s: {", f.name)
			for _, w := range gemmWidths {
				fmt.Fprintf(&b, "%d: gemm%sx%d_%s,", w, k, w, t.v.tag)
			}
			out("},")
		}
		out("},\nscore: map[int]scoreKernel{")
		for _, w := range attnWidths[t.v.lanes] {
			fmt.Fprintf(&b, "%d: attnScore%d_%s,", w, w, t.v.tag)
		}
		out("\n},\nvalue: map[int]valueKernel{")
		for _, w := range attnWidths[t.v.lanes] {
			fmt.Fprintf(&b, "%d: attnValue%d_%s,", w, w, t.v.tag)
		}
		out("\n},\nwidths: %#v,", attnWidths[t.v.lanes])
		out("dense: map[quant.Format]map[[2]int]denseKernel{")
		most := 1
		for _, k := range denseKinds {
			fmt.Fprintf(&b, "quant.%s: {", k)
			for _, s := range denseShapes(t.v) {
				fmt.Fprintf(&b, "{%d, %d}: dense%sx%dx%d_%s,", s[0], s[1], k, s[0], s[1], t.v.tag)
				most = max(most, s[1])
			}
			out("},")
		}
		out("},\ndenseCols: %d,\n}\n}", most)
	}
	return b.String()
}

// pretty formats Go source.
func pretty(src string) string {
	text, err := gofmt.Source([]byte(src))
	if err != nil {
		panic("asmgen: " + err.Error())
	}
	return string(text)
}
