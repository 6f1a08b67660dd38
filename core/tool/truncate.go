package tool

import (
	"fmt"
	"unicode/utf8"
)

// MaxOutput is how many characters of a result a model is shown; half of it from the beginning and half from the end.
const MaxOutput = 30_000

// Truncate shortens a result that is longer than MaxOutput characters. spill keeps the whole text and returns where; where it
// fails, the text is shortened all the same and says that the rest is lost.
func Truncate(text string, spill func(string) (path string, err error)) string {
	n := utf8.RuneCountInString(text)
	if n <= MaxOutput {
		return text
	}
	const half = MaxOutput / 2
	where := "the rest was not kept"
	if path, err := spill(text); err == nil {
		where = "full output: " + path
	}
	return fmt.Sprintf("%s\n... [%d characters left out; %s] ...\n%s", text[:offset(text, half)], n-2*half, where, text[offset(text, n-half):])
}

// offset returns the byte offset of the n-th character.
func offset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
