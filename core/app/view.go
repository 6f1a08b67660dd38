package app

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"atoll/core/agent"
	"atoll/core/permission"
	"atoll/core/tool"
)

// The list of files that a model is shown before the first prompt is at most this long; a longer one is replaced by the names in
// the workspace's own folder.
const (
	overviewLines = 40
	overviewBytes = 1500
	// A workspace whose files are together at most this long is shown whole.
	contentFiles = 12
	contentBytes = 6 << 10
)

// view is what the agent sees of the workspace, through the tools.
func view(tools *tool.Registry) *agent.View {
	return &agent.View{
		Overview: func(ctx context.Context) string { return overview(ctx, tools) },
		Find:     func(ctx context.Context, line string) []string { return find(ctx, tools, line) },
		Read: func(ctx context.Context, path string) string {
			text, _ := readText(ctx, tools, path)
			return text
		},
		Edit: "edit",
	}
}

// hit is a line of the search tool's output.
var hit = regexp.MustCompile(`(?m)^(.+?):\d+:`)

// find returns the files that hold a line.
func find(ctx context.Context, tools *tool.Registry, line string) []string {
	args, err := json.Marshal(map[string]any{"pattern": line, "literal": true})
	if err != nil {
		return nil
	}
	out, ok := list(ctx, tools, "grep", string(args))
	if !ok {
		return nil
	}
	var paths []string
	for _, m := range hit.FindAllStringSubmatch(out, -1) {
		if !slices.Contains(paths, m[1]) {
			paths = append(paths, m[1])
		}
	}
	return paths
}

// overview lists the files of the workspace, through the tools and so without what they hide. A small model that sees names does
// not invent them; see RATIONALE.md, "Why is a small workspace shown whole, and else a list of files?".
func overview(ctx context.Context, tools *tool.Registry) string {
	if list, ok := list(ctx, tools, "glob", `{"pattern":"**/*"}`); ok && fits(list) {
		if all := contents(ctx, tools, strings.Split(list, "\n")); all != "" {
			return all
		}
		return frame("Files in the workspace", list)
	}
	if list, ok := list(ctx, tools, "ls", `{}`); ok && fits(list) {
		return frame("Top folder of the workspace", list)
	}
	return ""
}

func list(ctx context.Context, tools *tool.Registry, name, args string) (string, bool) {
	tl, err := tools.Get(name, permission.ReadOnly)
	if err != nil {
		return "", false
	}
	res, err := tl.Run(ctx, tool.Call{ID: "overview", Input: json.RawMessage(args), Mode: permission.ReadOnly})
	if err != nil || res.IsError {
		return "", false
	}
	return strings.TrimSpace(strings.ToValidUTF8(res.Output, "\ufffd")), true
}

// contents returns the text of all the files, or "" where they are too many or too long, or one of them is no plain text.
func contents(ctx context.Context, tools *tool.Registry, names []string) string {
	if len(names) > contentFiles {
		return ""
	}
	const title = "The files in the workspace:\n\n"
	var b strings.Builder
	b.WriteString(title)
	for _, name := range names {
		if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			continue // settings and secrets more than code
		}
		text, ok := readText(ctx, tools, name)
		if !ok || b.Len()+len(text) > contentBytes {
			return ""
		}
		fmt.Fprintf(&b, "%s:\n```\n%s```\n\n", name, text)
	}
	if b.Len() == len(title) {
		return ""
	}
	return b.String()
}

// readText returns the text of a file; false where the tool left something out or said something of its own.
func readText(ctx context.Context, tools *tool.Registry, name string) (string, bool) {
	args, err := json.Marshal(map[string]string{"path": name})
	if err != nil {
		return "", false
	}
	numbered, ok := list(ctx, tools, "read", string(args))
	if !ok {
		return "", false
	}
	var b strings.Builder
	for line := range strings.SplitSeq(numbered, "\n") {
		_, text, ok := strings.Cut(line, "|")
		if !ok {
			return "", false
		}
		b.WriteString(text + "\n")
	}
	return b.String(), true
}

// fits reports whether a list is one, and not a note of the tool or too long.
func fits(list string) bool {
	return list != "" && list[0] != '(' && len(list) <= overviewBytes && strings.Count(list, "\n") < overviewLines
}

func frame(title, list string) string { return title + ":\n" + list + "\n\n" }
