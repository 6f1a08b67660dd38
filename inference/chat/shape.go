package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// probe finds out what the template accepts. It fails where not even a single
// question of a user can be rendered.
func (f *Format) probe() error {
	user := Message{Role: RoleUser, Content: "question"}
	answer := Message{Role: RoleAssistant, Content: "answer"}
	system := Message{Role: RoleSystem, Content: "instruction"}
	renders := func(sh shape, tools []Tool, msgs ...Message) (string, error) {
		t, err := f.render(Request{Messages: msgs, Tools: tools, AddGenerationPrompt: true}, sh)
		return t.s, err
	}
	accepts := func(sh shape, msgs ...Message) bool {
		_, err := renders(sh, nil, msgs...)
		return err == nil
	}
	sh := &f.shape
	out, err := renders(*sh, nil, user)
	if err != nil {
		sh.emptyTools = true
		var again error
		if out, again = renders(*sh, nil, user); again == nil {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("render a question with the chat template: %w", err)
	}
	if !strings.Contains(out, user.Content) {
		return errors.New("the chat template does not show a user's message")
	}
	sh.noSystem = !accepts(*sh, system, user)
	sh.oneSystem = !sh.noSystem && !accepts(*sh, system, user, answer, system, user)
	sh.mergeTurns = !accepts(*sh, user, user) || !accepts(*sh, user, answer, answer, user)

	// Tools: the first form in which everything shows.
	f.family = familyOf(f.tmpl)
	tool := Tool{Name: "probe_tool", Description: "probe", Parameters: json.RawMessage(`{"type": "object", "properties": {"probe_key": {"type": "string"}}}`)}
	call := Message{Role: RoleAssistant, ToolCalls: []ToolCall{{ID: "call00001", Name: "probe_called", Arguments: json.RawMessage(`{"probe_key": "probe_value"}`)}}}
	result := Message{Role: RoleTool, ToolCallID: "call00001", Name: "probe_called", Content: "probe_result"}
	shows := []string{"probe_tool", "probe_called", "probe_value", "probe_result"}
	if f.family != "" && builtFamily(f.family) {
		for n := range 4 {
			try := *sh
			try.tools, try.nullContent, try.stringArgs = true, n&1 != 0, n&2 != 0
			out, err := renders(try, []Tool{tool}, user, call, result)
			if err == nil && containsAll(out, shows) {
				*sh = try
				break
			}
		}
	}
	if !sh.tools {
		f.family = FamilyHermes
	}
	if sh.tools {
		second := call.ToolCalls[0]
		second.ID = "call00002"
		two := call
		two.ToolCalls = append(two.ToolCalls[:1:1], second)
		result2 := result
		result2.ToolCallID = second.ID
		_, err := renders(*sh, []Tool{tool}, user, two, result, result2)
		sh.oneCall = err != nil
		_, err = renders(*sh, []Tool{tool}, user, call, result, user)
		sh.bridge = err != nil
	}
	return nil
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// rewrite brings a conversation into the shape that the template accepts.
func (sh shape) rewrite(msgs []Message, tools []Tool) ([]Message, error) {
	out := make([]Message, 0, len(msgs)+1)
	for i, m := range msgs {
		switch m.Role {
		case RoleSystem, RoleUser, RoleAssistant, RoleTool:
		default:
			return nil, fmt.Errorf("message %d: unknown role %q", i, m.Role)
		}
		if m.Role != RoleAssistant && len(m.ToolCalls) > 0 {
			return nil, fmt.Errorf("message %d: tool calls in a message of role %q", i, m.Role)
		}
		out = append(out, m)
	}
	if !sh.tools {
		var err error
		if out, err = describeTools(out, tools); err != nil {
			return nil, err
		}
	}
	if sh.oneCall {
		out = singleCalls(out)
	}
	if sh.noSystem || sh.oneSystem {
		out = sh.foldSystem(out)
	}
	if sh.mergeTurns {
		out = mergeTurns(out)
	}
	if sh.bridge {
		out = bridgeTurns(out)
	}
	return out, nil
}

// singleCalls takes messages with several calls apart: each call is followed by
// its result.
func singleCalls(msgs []Message) []Message {
	var out []Message
	for i := 0; i < len(msgs); i++ {
		m := msgs[i]
		if len(m.ToolCalls) < 2 {
			out = append(out, m)
			continue
		}
		end := i + 1
		for end < len(msgs) && msgs[end].Role == RoleTool {
			end++
		}
		results := msgs[i+1 : end]
		used := make([]bool, len(results))
		for n, c := range m.ToolCalls {
			one := m
			if n > 0 {
				one = Message{Role: RoleAssistant}
			}
			one.ToolCalls = []ToolCall{c}
			out = append(out, one)
			for j, res := range results {
				if !used[j] && (res.ToolCallID == c.ID || res.ToolCallID == "") {
					used[j] = true
					out = append(out, res)
					break
				}
			}
		}
		for j, res := range results {
			if !used[j] {
				out = append(out, res)
			}
		}
		i = end - 1
	}
	return out
}

// foldSystem moves system messages that the template refuses into the user's turn
// behind them.
func (sh shape) foldSystem(msgs []Message) []Message {
	var out []Message
	pending := ""
	for i, m := range msgs {
		if m.Role == RoleSystem && (sh.noSystem || i > 0) {
			pending = joinTurns(pending, m.Content)
			continue
		}
		if pending != "" {
			if m.Role == RoleUser {
				m.Content = joinTurns(pending, m.Content)
			} else {
				out = append(out, Message{Role: RoleUser, Content: pending})
			}
			pending = ""
		}
		out = append(out, m)
	}
	if pending != "" {
		out = append(out, Message{Role: RoleUser, Content: pending})
	}
	return out
}

func joinTurns(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// mergeTurns joins neighbours of one role.
func mergeTurns(msgs []Message) []Message {
	var out []Message
	for _, m := range msgs {
		if n := len(out); n > 0 && out[n-1].Role == m.Role && len(out[n-1].ToolCalls) == 0 && (m.Role == RoleUser || m.Role == RoleAssistant) {
			last := &out[n-1]
			last.Content = joinTurns(last.Content, m.Content)
			last.Reasoning = joinTurns(last.Reasoning, m.Reasoning)
			last.ToolCalls = m.ToolCalls
			continue
		}
		out = append(out, m)
	}
	return out
}

// bridgeTurns puts an assistant's turn between a tool's result and a user's turn.
func bridgeTurns(msgs []Message) []Message {
	var out []Message
	for _, m := range msgs {
		if n := len(out); n > 0 && m.Role == RoleUser && out[n-1].Role == RoleTool {
			out = append(out, Message{Role: RoleAssistant, Content: bridgeText})
		}
		out = append(out, m)
	}
	return out
}

// describeTools puts tools, calls and results into the text of the turns, as the
// templates of the hermes family do.
func describeTools(msgs []Message, tools []Tool) ([]Message, error) {
	var out []Message
	if len(tools) > 0 {
		var b strings.Builder
		b.WriteString("# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
			"You are provided with function signatures within <tools></tools> XML tags:\n<tools>")
		for i := range tools {
			v, err := toolValue(&tools[i])
			if err != nil {
				return nil, err
			}
			b.WriteString("\n" + pythonJSON(v))
		}
		b.WriteString("\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n" +
			"<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>")
		if len(msgs) > 0 && msgs[0].Role == RoleSystem {
			first := msgs[0]
			first.Content = joinTurns(first.Content, b.String())
			out = append(out, first)
			msgs = msgs[1:]
		} else {
			out = append(out, Message{Role: RoleSystem, Content: b.String()})
		}
	}
	fromTool := false // the last message of out holds results
	for _, m := range msgs {
		if m.Role == RoleTool {
			s := "<tool_response>\n" + m.Content + "\n</tool_response>"
			if fromTool {
				out[len(out)-1].Content += "\n" + s
			} else {
				out = append(out, Message{Role: RoleUser, Content: s})
			}
			fromTool = true
			continue
		}
		fromTool = false
		for _, c := range m.ToolCalls {
			s := "<tool_call>\n{\"name\": " + pythonJSON(outside(c.Name)) + ", \"arguments\": " + pythonJSON(argumentsValue(c.Arguments)) + "}\n</tool_call>"
			if m.Content != "" {
				m.Content += "\n"
			}
			m.Content += s
		}
		m.ToolCalls = nil
		out = append(out, m)
	}
	return out, nil
}
