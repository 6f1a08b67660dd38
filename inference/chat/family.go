package chat

import "strings"

// FamilyHermes is the form {"name": ..., "arguments": ...} within <tool_call> tags: Hermes,
// Qwen2.5 and Qwen3, and every model whose template knows no tools.
const FamilyHermes = "hermes"

// families are the forms in which models call tools, each with texts that its
// templates contain, the most telling first.
var families = [...]struct {
	name  string
	built bool
	all   []string
}{
	{"harmony", false, []string{"<|channel|>", "<|message|>"}},
	{"deepseek", false, []string{"<｜tool▁calls▁begin｜>"}},
	{"kimi_k2", false, []string{"<|tool_calls_section_begin|>"}},
	{"minimax_m2", false, []string{"<minimax:tool_call>"}},
	{"glm4", false, []string{"<arg_key>"}},
	{"gemma4", false, []string{"<|tool_call>"}},
	{"lfm2", false, []string{"<|tool_call_start|>"}},
	{"command_r7b", false, []string{"<|START_ACTION|>"}},
	{"mistral_args", false, []string{"[TOOL_CALLS]", "[ARGS]"}},
	{"mistral", false, []string{"[TOOL_CALLS]"}},
	{"granite", false, []string{"<|tool_call|>"}},
	{"qwen3coder", true, []string{"<function=", "<parameter="}},
	{FamilyHermes, true, []string{"<tool_call>"}},
	{"llama3", false, []string{"<|eom_id|>"}},
	{"llama3", false, []string{"ipython"}},
}

// familyOf is the family whose texts a template contains, "" for none.
func familyOf(t *Template) string {
	all := strings.Join(t.lits, "\x00")
	for _, f := range families {
		if containsAll(all, f.all) {
			return f.name
		}
	}
	return ""
}

// builtFamily says whether there is a parser for a family.
func builtFamily(name string) bool {
	for _, f := range families {
		if f.name == name {
			return f.built
		}
	}
	return false
}
