package ignore

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgainstGit compares generated rule files with what git check-ignore says about generated paths.
func TestAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	run := func(stdin string, args ...string) []byte {
		cmd := exec.Command(git, args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "XDG_CONFIG_HOME="+root)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: nothing is ignored
			t.Fatalf("git %s: %v", args, err)
		}
		return out
	}
	run("", "init", "-q")

	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(s ...string) string { return s[rng.IntN(len(s))] }
	atom := func() string {
		return pick("a", "b", "ab", "abc", "x.go", "*", "?", "**", "*.go", "a*", "*b", "[ab]", "[!a]", "[a-c]x", "[[:alpha:]]b", `\a`, `\*`, "a**", "**b", "[]a]", "[a", "a b", "[^b]*", `[\]a]`, "a?b", "a[!x]b", "[a-]", "***", "*?")
	}
	path := func() string {
		n := 1 + rng.IntN(4)
		parts := make([]string, n)
		for i := range parts {
			parts[i] = pick("a", "b", "ab", "abc", "x.go", "bx", "ax", "a b", "*", "]", "-", "axb", "a", ".go", "[a")
		}
		return strings.Join(parts, "/")
	}
	rules := 0
	for round := range 150 {
		var file strings.Builder
		for range 1 + rng.IntN(4) {
			n := 1 + rng.IntN(3)
			parts := make([]string, n)
			for i := range parts {
				parts[i] = atom()
			}
			line := pick("", "", "", "!") + pick("", "", "/") + strings.Join(parts, "/") + pick("", "", "/", " ", `\ `, "\r")
			file.WriteString(line + "\n")
			rules++
		}
		if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(file.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		level := (*Level)(nil).Push("/r", []byte(file.String()))
		var paths []string
		seen := map[string]bool{}
		for range 60 {
			if p := path(); !seen[p] {
				seen[p] = true
				paths = append(paths, p)
			}
		}
		// None of the paths exists, so git takes each for a file; its parents are directories.
		out := run(strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin")
		ignored := map[string]bool{}
		for p := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
			ignored[string(p)] = true
		}
		for _, p := range paths {
			got := false
			for i := 0; i <= len(p) && !got; i++ {
				if i == len(p) || p[i] == '/' {
					got = level.Ignored("/r/"+p[:i], i < len(p))
				}
			}
			if got != ignored[p] {
				t.Errorf("round %d: %q ignored: %v, git says %v, rules %q", round, p, got, ignored[p], file.String())
			}
		}
	}
	t.Logf("%d rules compared", rules)
}
