package walk

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"atoll/tools-wasm/internal/ignore"
	"atoll/tools-wasm/internal/tooltest"
)

func files(t *testing.T, o Options) ([]string, Stats) {
	t.Helper()
	var got []string
	stats, err := Walk(o, func(e Entry) error {
		got = append(got, strings.TrimPrefix(e.Path, o.Workspace+"/"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, stats
}

func TestWalk(t *testing.T) {
	dir := tooltest.Dir(t,
		".git/info/exclude", "secret\n", ".gitignore", "*.log\n/out/\n",
		"a/x.go", "", "a/x.log", "", "a/.gitignore", "!x.log\n", "b.log", "", "out/f", "", "secret", "", "a/secret", "",
		"nested/.git/HEAD", "", "nested/y.log", "", "nested/.gitignore", "z\n", "nested/z", "",
		"linked/.gitignore", "-> ../rules", "rules", "f\n", "linked/f", "",
		"loop", "-> .", "file-link", "-> b.log",
	)
	got, stats := files(t, Options{Root: dir, Workspace: dir})
	want := []string{".gitignore", "a/.gitignore", "a/x.go", "a/x.log", "file-link", "linked/.gitignore", "linked/f", "loop", "nested/.gitignore", "nested/y.log", "rules"}
	if fmt.Sprint(got) != fmt.Sprint(want) || stats != (Stats{}) {
		t.Errorf("got  %v, %+v\nwant %v", got, stats, want)
	}
	// The same from every place below.
	for _, root := range []string{"a", "nested", "linked"} {
		got, _ := files(t, Options{Root: filepath.Join(dir, root), Workspace: dir})
		var sub []string
		for _, p := range want {
			if strings.HasPrefix(p, root+"/") {
				sub = append(sub, p)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(sub) {
			t.Errorf("from %s: got %v, want %v", root, got, sub)
		}
	}
	if got, _ := files(t, Options{Root: filepath.Join(dir, "out"), Workspace: dir}); fmt.Sprint(got) != "[out/f]" {
		t.Errorf("an ignored directory asked for by name: %v", got)
	}
}

// TestAbove is the third part of B047: rules from above the workspace come in a bundle.
func TestAbove(t *testing.T) {
	dir := tooltest.Dir(t, "foo/bar/baz", "", "foo/keep", "", ".gitignore", "**/bar/*\n")
	work := filepath.Join(dir, "foo")
	bundle := ignore.Bundle("", dir, []byte("**/bar/*\n"))
	if got, _ := files(t, Options{Root: work, Workspace: work, Bundle: bundle}); fmt.Sprint(got) != "[keep]" {
		t.Errorf("%v", got)
	}
	// A workspace that is itself ignored is still searched.
	bundle = ignore.Bundle(bundle, dir, []byte("foo\n*.x\n"))
	if got, _ := files(t, Options{Root: work, Workspace: work, Bundle: bundle}); fmt.Sprint(got) != "[bar/baz keep]" {
		t.Errorf("%v", got)
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		os.MkdirAll(filepath.Join(dir, fmt.Sprint("d", i)), 0o755)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("d", i), "f"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, stats := files(t, Options{Root: dir, Workspace: dir, MaxEntries: 60})
	if len(got) > 12 || !stats.Cut || !strings.Contains(stats.Note(), "not all of it was searched") {
		t.Errorf("%d files, %+v", len(got), stats)
	}
	n := 0
	if _, err := Walk(Options{Root: dir, Workspace: dir}, func(Entry) error { n++; return fs.SkipAll }); err != nil || n != 1 {
		t.Errorf("SkipAll: %d visits, %v", n, err)
	}
	if _, err := Walk(Options{Root: filepath.Join(dir, "nope"), Workspace: dir}, nil); err == nil {
		t.Error("a missing root is no error")
	}
}

// TestAgainstGit compares walks of generated trees with git ls-files -co --exclude-standard.
func TestAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed")
		}
		t.Skip("git is not installed")
	}
	rng := rand.New(rand.NewPCG(7, 8))
	pick := func(s ...string) string { return s[rng.IntN(len(s))] }
	run := func(dir string, args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "XDG_CONFIG_HOME="+dir)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	compared := 0
	for round := range 60 {
		root := t.TempDir()
		run(root, "init", "-q")
		dirs := []string{""}
		for range 6 {
			d := filepath.Join(dirs[rng.IntN(len(dirs))], pick("a", "b", "foo", "bar", "x.d"))
			if os.MkdirAll(filepath.Join(root, d), 0o755) == nil {
				dirs = append(dirs, d)
			}
		}
		for range 25 {
			name := filepath.Join(root, dirs[rng.IntN(len(dirs))], pick("f", "fig", "foo.go", "x.log", "y.log", "keep", "b a", "Z"))
			if os.WriteFile(name, []byte("x"), 0o644) != nil {
				t.Fatal("write " + name)
			}
		}
		rule := func() string {
			return pick("", "", "!") + pick("", "", "/", "**/") + pick("f*", "*.log", "a", "b", "bar/*", "foo", "foo/", "keep", "*", "a/**", "a/**/f", "x.?", "[a-f]*", `b\ a`, "*/foo", "Z ") + pick("", "", "/", "\r")
		}
		for _, d := range dirs {
			if rng.IntN(3) > 0 {
				continue
			}
			var rules []string
			for range 1 + rng.IntN(3) {
				rules = append(rules, rule())
			}
			if err := os.WriteFile(filepath.Join(root, d, ".gitignore"), []byte(strings.Join(rules, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if rng.IntN(3) == 0 {
			os.MkdirAll(filepath.Join(root, ".git/info"), 0o755)
			if err := os.WriteFile(filepath.Join(root, ".git/info/exclude"), []byte(rule()+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := strings.FieldsFunc(run(root, "ls-files", "-co", "-z", "--exclude-standard"), func(r rune) bool { return r == 0 })
		got, _ := files(t, Options{Root: root, Workspace: root})
		sort.Strings(got)
		sort.Strings(want)
		compared += len(want)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("round %d:\ngot  %q\nwant %q", round, got, want)
			continue
		}
		// From each directory that git does not hide, the walk sees what it sees there from the top.
		for _, d := range dirs[1:] {
			var sub []string
			for _, p := range want {
				if strings.HasPrefix(p, d+"/") {
					sub = append(sub, p)
				}
			}
			if len(sub) == 0 {
				continue
			}
			got, _ := files(t, Options{Root: filepath.Join(root, d), Workspace: root})
			sort.Strings(got)
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", sub) {
				t.Errorf("round %d from %s:\ngot  %q\nwant %q", round, d, got, sub)
			}
		}
	}
	t.Logf("%d files compared", compared)
}
