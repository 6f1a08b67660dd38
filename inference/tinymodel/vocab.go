package tinymodel

import (
	"fmt"
	"slices"
	"strings"
)

// The types of tokens, as GGUF stores them.
const (
	normal  = 1
	control = 3
	user    = 4
	unused  = 5
)

// merges is the number of rules that are learnt.
const merges = 176

type vocabulary struct {
	tokens []string
	types  []int32
	merges []string
}

func (v *vocabulary) add(text string, kind int32) {
	v.tokens = append(v.tokens, text)
	v.types = append(v.types, kind)
}

func (v *vocabulary) id(text string) uint32 { return uint32(slices.Index(v.tokens, text)) }

// makeVocabulary returns the 256 bytes, the learnt tokens, three control tokens, two
// user-defined ones, and unused ones up to a multiple of 32.
func makeVocabulary() *vocabulary {
	v := &vocabulary{}
	var chars [256]string
	next := rune(0x100)
	for b := range chars {
		switch r := rune(b); {
		case r >= '!' && r <= '~', r >= 0xA1 && r <= 0xAC, r >= 0xAE:
			chars[b] = string(r)
		default:
			chars[b] = string(next)
			next++
		}
		v.add(chars[b], normal)
	}
	v.learn(chars)
	v.add("<|endoftext|>", control)
	v.add("<|im_start|>", control)
	v.add("<|im_end|>", control)
	v.add("<tool_call>", user)
	v.add("</tool_call>", user)
	for len(v.tokens)%32 != 0 {
		v.add(fmt.Sprintf("[PAD%d]", len(v.tokens)), unused)
	}
	return v
}

// learn finds merges by byte pair encoding: again and again the most frequent pair
// becomes a token, the lesser pair in string order where counts are equal.
func (v *vocabulary) learn(chars [256]string) {
	type pair struct{ left, right string }
	var list [][]string
	for _, word := range strings.Split(corpus, "|") {
		var symbols []string
		for _, b := range []byte(word) {
			symbols = append(symbols, chars[b])
		}
		list = append(list, symbols)
	}
	for range merges {
		count := map[pair]int{}
		for _, w := range list {
			for i := range len(w) - 1 {
				count[pair{w[i], w[i+1]}]++
			}
		}
		var best pair
		for p, n := range count {
			if d := n - count[best]; d > 0 || d == 0 && (p.left < best.left || p.left == best.left && p.right < best.right) {
				best = p
			}
		}
		for k, w := range list {
			var out []string
			for i := 0; i < len(w); i++ {
				if i+1 < len(w) && w[i] == best.left && w[i+1] == best.right {
					out = append(out, best.left+best.right)
					i++
					continue
				}
				out = append(out, w[i])
			}
			list[k] = out
		}
		v.merges = append(v.merges, best.left+" "+best.right)
		if text := best.left + best.right; !slices.Contains(v.tokens, text) {
			v.add(text, normal)
		}
	}
}

// corpus holds the words that merges are learnt from, separated by "|".
const corpus = "the| the| the| a| to| to| of| of| and| and| in| in| is| it| that| for| for| on| with| as| be| are| this| from| by|not| not| or|if| if| you| your" +
	"|user|user|assistant|assistant|system|system|\n|\n|\n\n|\n\n|  |    |    |        |    |\t|\t|\t\t|,|.|:|;|()|()|();|{|}|{}|\"|\",|\":| \"| {|=|==| =| =| ==| !=| +| -|//| //|#|```|```" +
	"|func| func|return| return| return|err| err| err| nil| nil|var| var|package|import| import|type| struct|string| string| int|int|for| range| := | :=| :=|fmt|.Print|ln|Error|main|test|Test" +
	"|def| def|self| self|None| None|True|False|class| class|print| print|len| len|else| else|elif| while|list|dict| in| not|file| file| file|files|name|\"name\"|\"arguments\"|arguments|tool|call|tool_call" +
	"|read| read|write| write|edit| edit|path|\"path\"|content|line| line|lines| code| function| error| value| number| line|hello|Hello| world| world|What|what| can| help| Hello|how| How|please| please" +
	"|1|2|3|10|100|é|è|ü|ö|ä|ß|—|…|“|”|你|好|世|界|の|は|да|не|и|😀|👍"

// ChatML is the template of tiny models.
const ChatML = `{%- if tools %}
{{- '<|im_start|>system\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{%- endif %}
{{- '# Tools\n\nAnswer with <tool_call>{"name": ..., "arguments": {...}}</tool_call> to call one of these:\n<tools>' }}
{%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}
{{- '\n</tools><|im_end|>\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant' }}
{%- if message.content %}{{- '\n' + message.content }}{%- endif %}
{%- if message.tool_calls %}{%- for call in message.tool_calls %}
{%- if call.function %}{%- set call = call.function %}{%- endif %}
{{- '\n<tool_call>\n{"name": "' + call.name + '", "arguments": ' }}{{- call.arguments | tojson }}{{- '}\n</tool_call>' }}
{%- endfor %}{%- endif %}
{{- '<|im_end|>\n' }}
{%- elif message.role != 'system' or not loop.first %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}
`
