package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// memoryChild names the model file for the child process of TestResidentMemory.
const memoryChild = "ATOLL_TEST_MEMORY_CHILD"

// TestResidentMemory runs a model with a window of 4,096 tokens in a process of its own
// and compares the most memory that was ever resident with the size of the file, the
// cache and 200 MB.
func TestResidentMemory(t *testing.T) {
	if path := os.Getenv(memoryChild); path != "" {
		reportMemory(t, path)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	path := realModel(t, qwenHalf)
	size, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestResidentMemory$")
	cmd.Env = append(os.Environ(), memoryChild+"="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var m struct{ Peak, KV int64 }
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const mb = 1e6
	t.Logf("peak %.0f MB; file %.0f MB, cache %.0f MB", float64(m.Peak)/mb, float64(size.Size())/mb, float64(m.KV)/mb)
	if limit := size.Size() + m.KV + 200*mb; m.Peak > limit {
		t.Errorf("%.0f MB were resident, want at most %.0f MB", float64(m.Peak)/mb, float64(limit)/mb)
	}
}

// reportMemory works with a model and prints its memory as JSON.
func reportMemory(t *testing.T, path string) {
	e, err := Open(context.Background(), Options{Path: path, Ctx: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Generate(context.Background(), Request{Tokens: prompt(600, 1), MaxTokens: 20, IgnoreEOG: true}, func(Token) error { return nil }); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("{\"Peak\": %d, \"KV\": %d}\n", kb*1024, e.Info().Memory.KV)
		}
	}
}
