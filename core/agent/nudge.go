package agent

import (
	"fmt"
	"regexp"
	"strings"

	"atoll/core/llm"
	"atoll/core/permission"
)

const (
	// nudgeText is what a model is told that ended its turn with an announcement.
	nudgeText = "Continue: call the tool for that now. If nothing is left to do, give the final answer."
	// showedText is what a model is told that showed changed code instead of changing the file.
	showedText = "No file has been changed: code in an answer changes nothing. Make this change in %s now, with a call of %s."
)

// nothingText is what a model is told whose answer is a call of something that is no tool, such as a function of the project.
const nothingText = "That is not a call of one of the tools, and nothing was run. Answer in words from what you have seen."

// callOfNothing finds an answer that is, or ends with, a JSON object in the form of a call.
var callOfNothing = regexp.MustCompile("(?s)^(?:.*\n)?(?:```[a-z]*\\s*)?\\{\\s*\"name\":\\s*\"[^\"]*\",\\s*\"arguments\":[^`]*\\}\\s*(?:```)?\\s*$")

// nudge says what to tell a model that ended its turn too early, and what its next step must be; "" where the turn is over.
func (t *turn) nudge() (text string, choice llm.ToolChoice) {
	answer := t.out.Text
	if v := t.opts.View; v != nil && !t.changed && t.opts.Broker.Mode() == permission.WorkspaceWrite {
		if path, block := t.shownChange(answer); path != "" {
			choice := llm.ToolChoice{Mode: llm.ToolRequired, Name: v.Edit, Given: []llm.Argument{{Name: "path", Value: path}}}
			if old := replaced(v.Read(t.ctx, path), block); old != "" {
				choice.Given = append(choice.Given, llm.Argument{Name: "old", Value: old})
			}
			return fmt.Sprintf(showedText, path, v.Edit), choice
		}
	}
	if strings.TrimSpace(answer) == "" || announces(answer) {
		return nudgeText, llm.ToolChoice{}
	}
	if callOfNothing.MatchString(answer) {
		return nothingText, llm.ToolChoice{Mode: llm.ToolNone}
	}
	return "", llm.ToolChoice{}
}

const (
	// telling is the length from which a line of code is taken to be a file's and not any code's, such as "return nil".
	telling = 12
	// lookups limits the lines of a block that are looked for.
	lookups = 12
)

// shownChange returns the file whose code the answer shows with a change: the one that most lines of a fenced block stand in,
// where other lines of the block stand in no file, and that block. It is "" where there is no such file, or more than one.
func (t *turn) shownChange(answer string) (path, block string) {
	blocks := strings.Split("\n"+answer, "\n```")
	for i := 1; i+1 < len(blocks); i += 2 {
		_, code, _ := strings.Cut(blocks[i], "\n") // without the language
		votes := map[string]int{}
		changed := false
		looked := 0
		for line := range strings.Lines(code) {
			if line = strings.TrimSpace(line); len(line) < telling || looked == lookups {
				continue
			}
			looked++
			paths := t.opts.View.Find(t.ctx, line)
			changed = changed || len(paths) == 0
			for _, p := range paths {
				votes[p]++
			}
		}
		best, most, tie := "", 0, false
		for p, n := range votes {
			switch {
			case n > most:
				best, most, tie = p, n, false
			case n == most:
				tie = true
			}
		}
		if changed && best != "" && !tie {
			return best, code
		}
	}
	return "", ""
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
