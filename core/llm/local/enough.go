package local

import (
	"encoding/json"
	"errors"
	"strings"

	"atoll/core/llm"
)

// errEnough ends a step after a call without tags. See fenced.
var errEnough = errors.New("the call is complete")

// fenced watches an answer for the end of a call without tags: a fenced block, or a bare object. A small model that writes its
// call as JSON does not stop there: it goes on with a result that it makes up. Nothing that follows the call can be of use, since
// the model has not seen the result yet, and with text behind it the block would count as an example and no call at all.
type fenced struct {
	specs []llm.ToolSpec
	parse func() *parser // a new parser for the whole answer
	raw   strings.Builder
}

// add takes the next piece and reports whether the answer may end here, because it ends with a fenced call.
func (f *fenced) add(piece string) bool {
	f.raw.WriteString(piece)
	if len(f.specs) == 0 {
		return false
	}
	text := f.raw.String()
	fence := strings.ContainsAny(piece, "`\n") && closesFence(text)
	bare := strings.Contains(piece, "}") && strings.HasPrefix(strings.TrimLeft(text, " \n"), "{") && json.Valid([]byte(text))
	if !fence && !bare {
		return false
	}
	p := f.parse()
	chunks := append(p.write(f.raw.String()), p.end(false)...)
	for _, c := range chunks {
		if _, ok := c.(llm.ToolCall); ok {
			return true
		}
	}
	return false
}

// behindEnds cuts text behind each run of backticks and each closing brace, so that the end of a call and what follows it come
// apart.
func behindEnds(text string) []string {
	var out []string
	for i := 1; i < len(text); i++ {
		if text[i-1] == '`' && text[i] != '`' || text[i-1] == '}' {
			out = append(out, text[:i])
			text, i = text[i:], 0
		}
	}
	return append(out, text)
}

// closesFence reports whether the last line of text closes a fenced block.
func closesFence(text string) bool {
	text = strings.TrimRight(text, " \n")
	if !strings.HasSuffix(text, "\n```") {
		return false
	}
	fences := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fences++
		}
	}
	return fences%2 == 0
}
