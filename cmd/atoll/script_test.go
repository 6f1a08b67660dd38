package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary stand in for atoll: started under that name,
// it is a real process that runs main.
func TestMain(m *testing.M) {
	testscript.Main(cleaner{m}, map[string]func(){"atoll": main})
}

// cleaner removes what the tests share when all have run.
type cleaner struct{ m *testing.M }

func (c cleaner) Run() int {
	code := c.m.Run()
	if cache, err := sharedCache(); err == nil {
		os.RemoveAll(cache)
	}
	return code
}

// sharedCache is the cache folder of all processes under test: compiling the
// tools once takes seconds.
var sharedCache = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "atoll-test-cache-") })

// TestScripts runs testdata/script/*.txtar. Each script has a home of its own.
func TestScripts(t *testing.T) {
	cache, err := sharedCache()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, ".home")
			env.Setenv("HOME", home)
			env.Setenv("USERPROFILE", home)
			env.Setenv("ATOLL_HOME", filepath.Join(home, "atoll"))
			env.Setenv("ATOLL_CACHE", cache)
			env.Setenv("ESC", "\x1b")
			env.Setenv("NL", "\n")
			return os.MkdirAll(home, 0o755)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":    cmdStatus,
			"jsonlines": cmdJSONLines,
			"jsonfield": cmdJSONField,
			"lines":     cmdLines,
		},
	})
}

// cmdStatus runs a command and wants an exact exit code:
//
//	status 2 atoll -p
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("status: %v", err)
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit interface{ ExitCode() int }
		var ok bool
		if exit, ok = err.(interface{ ExitCode() int }); !ok {
			ts.Fatalf("status: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cmdJSONLines checks that each line of a file is a JSON object, that the "type"
// values are the given ones in order ("..." stands for any run of others), and
// that numbered events have no gaps.
//
//	jsonlines stdout session_started ... text_delta ... result
func cmdJSONLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: jsonlines FILE TYPE...")
	}
	var types []string
	seq := uint64(0)
	for i, line := range strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n") {
		var v struct {
			Type string `json:"type"`
			Seq  uint64 `json:"seq"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Type == "" {
			ts.Fatalf("line %d is no typed object: %v: %s", i+1, err, line)
		}
		if v.Seq != 0 {
			if seq != 0 && v.Seq != seq+1 {
				ts.Fatalf("line %d: event %d follows event %d", i+1, v.Seq, seq)
			}
			seq = v.Seq
		}
		types = append(types, v.Type)
	}
	if !matchTypes(types, args[1:]) {
		ts.Fatalf("types: %s", strings.Join(types, " "))
	}
}

func matchTypes(types, pattern []string) bool {
	if len(pattern) == 0 {
		return len(types) == 0
	}
	if pattern[0] == "..." {
		for i := range len(types) + 1 {
			if matchTypes(types[i:], pattern[1:]) {
				return true
			}
		}
		return false
	}
	return len(types) > 0 && types[0] == pattern[0] && matchTypes(types[1:], pattern[1:])
}

// cmdJSONField looks into the last line of a file, a JSON object (or an array,
// whose elements are named by numbers), for a path of keys:
//
//	jsonfield stdout exit_code 3
//	jsonfield stdout 0.name read
//	! jsonfield stdout error
//
// Without a value the field only has to be there.
func cmdJSONField(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: [!] jsonfield FILE PATH [VALUE]")
	}
	text := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
	text = text[strings.LastIndexByte(text, '\n')+1:]
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		ts.Fatalf("not JSON: %v: %s", err, text)
	}
	found := true
	for _, key := range strings.Split(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v, found = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if found = err == nil && i < len(x); found {
				v = x[i]
			}
		default:
			found = false
		}
		if !found {
			break
		}
	}
	got := ""
	if s, ok := v.(string); ok && found {
		got = s
	} else if found {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.Encode(v)
		got = strings.TrimSpace(b.String())
	}
	equal := found && (len(args) == 2 || got == args[2])
	if equal == neg {
		ts.Fatalf("%s is %q (there: %v) in %s", args[1], got, found, text)
	}
}

// cmdLines wants a number of lines: lines stderr 1
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE NUMBER")
	}
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d lines, want %s", args[0], n, args[1])
	}
}
