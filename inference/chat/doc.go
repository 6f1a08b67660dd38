// Package chat turns conversations into prompts and model output into tool calls.
//
// Three parts build on each other:
//
//   - [Parse] and [Template.Execute] are a Jinja engine for the chat templates
//     that come inside model files. It follows Jinja2 3.1 as Hugging Face
//     transformers sets it up: trim_blocks, lstrip_blocks, loop controls, tojson
//     as Python's json.dumps writes it, raise_exception and strftime_now.
//   - [NewFormat] and [Format.Render] put a conversation through a template and
//     give back segments. A segment is special only where the template itself
//     wrote the text of a control token; nothing that came from a user, a file,
//     a tool or a model can become one.
//   - [Format.NewParser] reads the answer back while it streams: text, reasoning
//     and tool calls, with the repairs that small models need.
//
// A template is code that somebody else wrote: execution is bounded in steps,
// memory, output and nesting, reaches no file, clock or network, and reports
// errors with the line they happened on.
//
// The package does no tokenizing and knows no agent. Values are not safe for
// concurrent use; a [Template] and a [Format] are immutable and are.
package chat
