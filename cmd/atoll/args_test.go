package main

import (
	"io"
	"strings"
	"testing"
)

func TestArrange(t *testing.T) {
	for _, tc := range []struct {
		in   string // arguments separated by blanks
		want string // arranged, or "error: ..."
	}{
		{"", "atoll --"},
		{"-p hello", "atoll --p=hello --"},
		{"-C dir model list --json", "error: atoll model list has no flag -C; see atoll model list --help"},
		{"model list --json", "atoll model list --json --"},
		{"model --json list", "error: atoll model has no flag --json; see atoll model --help"},
		{"model pull qwen --source pip", "atoll model pull --source=pip -- qwen"},
		{"model pull --source=pip qwen", "atoll model pull --source=pip -- qwen"},
		{"model pull -- --source", "atoll model pull -- --source"},
		{"model pull qwen --sourec pip", "error: atoll model pull has no flag --sourec; see atoll model pull --help"},
		{"model pull --source", "error: flag --source needs a value"},
		{"model pull --source --json", "error: flag --source needs a value"},
		{"-p", "error: flag -p needs a value"},
		{"-p -", "atoll --p=- --"},
		{"-p -- -x", "error: atoll has no flag -x; see atoll --help"},
		{"-p -5", "atoll --p=-5 --"},
		{"model rm -1", "atoll model rm -- -1"},
		{"modle list", `error: atoll has no command "modle"; did you mean "model"?`},
		{"fix everything", `error: atoll has no command "fix"; a prompt is given with -p "..."`},
		{"model", "error: atoll model needs a command; see atoll model --help"},
		{"model lst", `error: atoll model has no command "lst"; did you mean "list"?`},
		{"--help", "atoll --help"},
		{"model pull x --help", "atoll model pull --help"},
		{"--version", "atoll version"},
		{"model --version", "error: atoll model has no flag --version; see atoll model --help"},
		{"--continue -p=a=b", "atoll --continue --p=a=b --"},
	} {
		app := (&program{stdout: io.Discard, stderr: io.Discard}).app()
		got, err := arrange(app, strings.Fields(tc.in))
		text := strings.Join(got, " ")
		if err != nil {
			text = "error: " + err.Error()
			if exitCode(t.Context(), err) != exitUsage {
				t.Errorf("%q: exit code %d", tc.in, exitCode(t.Context(), err))
			}
		}
		if text != tc.want {
			t.Errorf("%q:\n got %s\nwant %s", tc.in, text, tc.want)
		}
	}
}
