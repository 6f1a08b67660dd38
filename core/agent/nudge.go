package agent

import "strings"

// nudgeText is what a model is told that ended its turn with an announcement.
const nudgeText = "Continue: call the tool for that now. If nothing is left to do, give the final answer."

// announcements are beginnings of a last sentence that says what comes next instead of doing it.
var announcements = []string{
	"i'll ", "i will ", "let me ", "let's ", "i am going to ", "i'm going to ", "now i need to ", "next, i ", "first, i ",
}

// announces reports whether a text ends with the announcement of an action: its last line begins with one of the phrases, or
// ends with a colon.
func announces(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, "```") {
		return false
	}
	last := strings.ToLower(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]))
	if strings.HasSuffix(last, "?") || strings.Contains(last, "let me know") {
		return false
	}
	if strings.HasSuffix(last, ":") {
		return true
	}
	// The last sentence of the line.
	if i := strings.LastIndex(strings.TrimRight(last, ".!"), ". "); i >= 0 {
		last = last[i+2:]
	}
	for _, a := range announcements {
		if strings.HasPrefix(last, a) {
			return true
		}
	}
	return false
}
