package agent

import (
	"regexp"
	"strings"

	"atoll/core/llm"
	"atoll/core/message"
	"atoll/core/permission"
)

const (
	// nudgeText is what a model is told that ended its turn with an announcement.
	nudgeText = "Continue: call the tool for that now. If nothing is left to do, give the final answer."
	// showedText is what a model is told that showed changed code instead of changing the file.
	showedText = "No file has been changed: code in an answer changes nothing. Make this change in the file now, with one call of edit."
)

// nudge says what to tell a model that ended its turn too early, and what its next step must be; "" where the turn is over.
func (t *turn) nudge() (text string, choice llm.ToolChoice) {
	answer := t.out.Text
	if !t.changed && t.opts.Broker.Mode() == permission.WorkspaceWrite && t.showsChange(answer) {
		return showedText, llm.ToolRequired
	}
	if strings.TrimSpace(answer) == "" || announces(answer) {
		return nudgeText, llm.ToolAuto
	}
	return "", ""
}

// telling is the length from which a line of code is taken to be the file's and not any code's, such as "return nil".
const telling = 12

var lineNumber = regexp.MustCompile(`^ *\d+\|`)

// showsChange reports whether a fenced block of the answer has lines of a file that the model has seen, beside lines that are
// in none: the file's code, changed.
func (t *turn) showsChange(answer string) bool {
	blocks := strings.Split("\n"+answer, "\n```")
	if len(blocks) < 3 {
		return false
	}
	seen := map[string]bool{}
	see := func(text string) {
		for line := range strings.Lines(text) {
			seen[strings.TrimSpace(lineNumber.ReplaceAllString(line, ""))] = true
		}
	}
	for _, m := range t.opts.Session.ForModel() {
		for _, part := range m.Parts {
			switch p := part.(type) {
			case message.Text:
				if m.Role == message.User {
					see(p.Text)
				}
			case message.Tool:
				see(p.Output)
			}
		}
	}
	for i := 1; i < len(blocks); i += 2 {
		_, code, _ := strings.Cut(blocks[i], "\n") // without the language
		quoted, changed := false, false
		for line := range strings.Lines(code) {
			if line = strings.TrimSpace(line); len(line) >= telling {
				quoted, changed = quoted || seen[line], changed || !seen[line]
			}
		}
		if quoted && changed {
			return true
		}
	}
	return false
}

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
