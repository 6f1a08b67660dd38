package agent

import "testing"

func TestReplaced(t *testing.T) {
	const file = `package a

// Sum adds up.
func Sum(list []int) int {
	total := 0
	for _, v := range list {
		total -= v
	}
	return total
}

// Mean is the average.
func Mean(list []int) int {
	if len(list) == 0 {
		return 0
	}
	return Sum(list) / len(list)
}
`
	for _, c := range []struct{ name, block, want string }{
		{"a line between ties", "func Sum(list []int) int {\n\ttotal := 0\n\tfor _, v := range list {\n\t\ttotal += v\n\t}\n\treturn total\n}\n", "\t\ttotal -= v"},
		{"other indentation", "func Sum(list []int) int {\n  total := 0\n  for _, v := range list {\n    total += v\n  }\n  return total\n}", "\t\ttotal -= v"},
		{"behind the last tie", "// Mean is the average.\nfunc Mean(list []int) int {\n\tif len(list) == 0 {\n\t\treturn 0\n\t}\n\treturn Sum(list) / (len(list) + 1)\n}", "\treturn Sum(list) / len(list)"},
		{"two lines", "func Sum(list []int) int {\n\ttotal := 1\n\tfor _, w := range list {\n\t\ttotal += w\n\t}\n\treturn total\n}", "\ttotal := 0\n\tfor _, v := range list {\n\t\ttotal -= v"},
		{"an insertion", "func Sum(list []int) int {\n\ttotal := 0\n\t// Each one counts.\n\tfor _, v := range list {\n\t\ttotal -= v\n", "\ttotal := 0"},
		{"text that stands twice", "func Mean(list []int) int {\n\tif len(list) == 0 {\n\t\treturn 0\n\t} else if true {\n\treturn Sum(list) / len(list)\n", "\t\treturn 0\n\t}"},
		{"a removal", "for _, v := range list {\n\t}\n\treturn total\n", "\t\ttotal -= v"},
		{"nothing changed", "func Sum(list []int) int {\n\ttotal := 0\n", ""},
		{"two places", "func Sum(list []int) int {\n\ttotal := 1\n\tfor _, v := range list {\n\t\ttotal += v\n\t}\n", ""},
		{"nothing in common", "print(1)\n", ""},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := replaced(file, c.block); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if got := replaced("", "func Sum(list []int) int {"); got != "" {
		t.Errorf("in an empty file: %q", got)
	}
}
