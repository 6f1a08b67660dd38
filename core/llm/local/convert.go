package local

import (
	"fmt"
	"strings"

	"atoll/core/llm"
	"atoll/core/message"
	"atoll/inference/chat"
)

// unanswered is what the model is told about a call that has no result.
const unanswered = "error: the call was interrupted and has no result"

// messages converts a conversation. An assistant's message becomes one turn with its
// calls, followed by one tool turn for each of them.
func messages(req *llm.Request) []chat.Message {
	var out []chat.Message
	if req.System != "" {
		out = append(out, chat.Message{Role: chat.RoleSystem, Content: req.System})
	}
	start := len(out)
	for _, msg := range req.Messages {
		if msg.Aborted {
			continue
		}
		role := chat.RoleUser
		if msg.Role == message.Assistant {
			role = chat.RoleAssistant
		}
		turn := chat.Message{Role: role}
		var text strings.Builder
		var answers []chat.Message
		summarised := false
		for _, part := range msg.Parts {
			switch p := part.(type) {
			case message.Text:
				text.WriteString(p.Text)
			case message.Tool:
				answer := chat.Message{Role: chat.RoleTool, ToolCallID: p.CallID, Name: p.Name, Content: p.Output}
				if !p.Done() {
					answer.Content = unanswered
				}
				answers = append(answers, answer)
				if p.Raw != "" { // could not be understood: shown as it was written
					text.WriteString(p.Raw)
					continue
				}
				turn.ToolCalls = append(turn.ToolCalls, chat.ToolCall{ID: p.CallID, Name: p.Name, Arguments: p.Input})
			case message.Image:
				fmt.Fprintf(&text, "[image of type %s: this model reads text only]", p.MIME)
			case message.Compaction:
				// The summary stands for everything before it.
				out = append(out[:start:start], chat.Message{Role: chat.RoleUser, Content: p.Summary})
				summarised = true
			case message.Reasoning, message.StepStart, message.StepFinish:
			}
		}
		turn.Content = text.String()
		if turn.Content == "" && len(turn.ToolCalls) == 0 && (summarised || role == chat.RoleAssistant) {
			continue // nothing was said
		}
		out = append(append(out, turn), answers...)
	}
	return out
}
