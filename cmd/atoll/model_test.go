//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"atoll/inference/gguf"
	"atoll/inference/tinymodel"
)

// tiny writes a model of a few hundred kilobytes.
func (p *place) tiny(t *testing.T, change func(b []byte) []byte) string {
	t.Helper()
	b, err := tinymodel.Bytes(tinymodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		b = change(b)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBadModelFiles: whatever is wrong with the file, it is one line that names
// it, exit code 6, and no session.
func TestBadModelFiles(t *testing.T) {
	rename := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte {
			if !bytes.Contains(b, []byte(from)) {
				t.Fatalf("the tiny model has no %q", from)
			}
			return bytes.ReplaceAll(b, []byte(from), []byte(to))
		}
	}
	parts := func(change func(kv []gguf.Pair, blobs []gguf.Blob) ([]gguf.Pair, []gguf.Blob)) func([]byte) []byte {
		return func([]byte) []byte {
			kv, blobs, err := tinymodel.Parts(tinymodel.Options{})
			if err != nil {
				t.Fatal(err)
			}
			kv, blobs = change(kv, blobs)
			var b bytes.Buffer
			if err := gguf.Write(&b, kv, blobs); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
	}
	cases := []struct {
		name   string
		change func([]byte) []byte
		want   string // in the line, beside the file's name
	}{
		{"empty", func([]byte) []byte { return nil }, ""},
		{"foreign", func([]byte) []byte { return []byte(strings.Repeat("<html>", 100)) }, "GGUF"},
		{"a count that lies", func(b []byte) []byte { binary.LittleEndian.PutUint64(b[8:], 1<<60); return b }, ""},
		{"key count that lies", func(b []byte) []byte { binary.LittleEndian.PutUint64(b[16:], 1<<60); return b }, ""},
		{"unknown version", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[4:], 77); return b }, "77"},
		{"unknown architecture", rename("qwen2", "qwen9"), "qwen9"},
		{"a tensor with another name", rename("blk.1.attn_q.weight", "blk.1.attn_X.weight"), "blk.1.attn_"},
		{"a tensor that is missing", parts(func(kv []gguf.Pair, blobs []gguf.Blob) ([]gguf.Pair, []gguf.Blob) {
			return kv, blobs[:len(blobs)-1]
		}), ""},
		{"a key that is missing", rename("attention.head_count_kv", "attention.head_count_xx"), "head_count"},
	}
	for _, cut := range []float64{0.001, 0.1, 0.5, 0.9, 0.9999} {
		cases = append(cases, struct {
			name   string
			change func([]byte) []byte
			want   string
		}{fmt.Sprintf("cut to %v", cut), func(b []byte) []byte { return b[:int(float64(len(b))*cut)] }, ""})
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlace(t)
			path := p.tiny(t, tc.change)
			code, stdout, stderr := p.run(t, "-p", "hello", "-m", path)
			if code != exitModel || stdout != "" {
				t.Errorf("exit code %d, stdout %q", code, stdout)
			}
			if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "tiny.gguf") || !strings.Contains(stderr, tc.want) {
				t.Errorf("stderr: %s", stderr)
			}
			if list := p.ok(t, "session", "list", "--json"); list != "[]\n" {
				t.Errorf("sessions: %s", list)
			}
			for _, sub := range []string{"tokenize", "inspect"} {
				args := []string{"model", sub, path}
				if sub == "tokenize" {
					args = []string{"model", sub, "-m", path, p.workspace + "/notes.txt"}
				}
				if code, _, stderr := p.run(t, args...); code != exitOK && code != exitModel || strings.Contains(stderr, "goroutine") {
					t.Errorf("model %s: exit code %d: %s", sub, code, stderr)
				}
			}
		})
	}
}

// TestCorruptModelFiles flips bytes in the head of a file: it loads or it is
// refused, and that is all.
func TestCorruptModelFiles(t *testing.T) {
	p := newPlace(t)
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	random := rand.New(rand.NewPCG(3, 3))
	for range rounds {
		var at int
		path := p.tiny(t, func(b []byte) []byte {
			at = random.IntN(min(len(b), 40_000))
			b[at] ^= byte(1 + random.IntN(255))
			return b
		})
		code, _, stderr := p.run(t, "-p", "hello", "-m", path, "--max-steps", "1", "--ctx", "64")
		if code != exitModel && code != exitLimit && code != exitOK && code != exitFailure || strings.Contains(stderr, "goroutine") || strings.Contains(stderr, "panic") {
			t.Errorf("byte %d: exit code %d: %s", at, code, stderr)
		}
		os.Remove(path)
	}
}

// TestContextIsALimit: a prompt that does not fit is said so, never cut.
func TestContextIsALimit(t *testing.T) {
	p := newPlace(t)
	path := p.tiny(t, nil)
	code, stdout, stderr := p.run(t, "-p", strings.Repeat("many words ", 2000), "-m", path, "--output-format", "stream-json")
	if code != exitLimit || !strings.Contains(stdout, `"type":"context_overflow"`) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var r struct {
		Type, Stop string
		ExitCode   int `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil || r.Type != "result" || r.Stop != "context" || r.ExitCode != exitLimit {
		t.Errorf("last line %s", lines[len(lines)-1])
	}
	if code, _, stderr := p.run(t, "-p", "hi", "-m", path, "--ctx", "999999999"); code != exitModel && code != exitUsage && code != exitLimit {
		t.Errorf("a window of 999999999: exit code %d: %s", code, stderr)
	}
}

// TestRealModel lets the smallest real model answer, through every layer.
func TestRealModel(t *testing.T) {
	const file = "SmolLM2-135M-Instruct.Q4_1.gguf"
	path := filepath.Join(os.Getenv("ATOLL_MODELS"), file)
	if _, err := os.Stat(path); err != nil || os.Getenv("ATOLL_MODELS") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not in ATOLL_MODELS", file)
		}
		t.Skipf("%s is not in ATOLL_MODELS; fetch it with: atoll model pull smollm2-135m", file)
	}
	if testing.Short() {
		t.Skip("runs a model")
	}
	p := newPlace(t)
	out := p.ok(t, "-p", "What is the capital of France? Answer with one word.", "-m", path, "--output-format", "json")
	var r struct {
		Text  string
		Usage struct{ Prompt, Output int }
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Text, "Paris") || r.Usage.Prompt < 100 || r.Usage.Output < 1 {
		t.Errorf("answer: %+v", r)
	}
	if again := p.ok(t, "-p", "What is the capital of France? Answer with one word.", "-m", path); strings.TrimSpace(again) != strings.TrimSpace(r.Text) {
		t.Errorf("at temperature 0 the answer differs: %q and %q", r.Text, again)
	}
}

// TestVersionIsSmall: starting the program must not cost much. The real program
// is built for it: the test binary holds more.
func TestVersionIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	// Linux counts what the parent took at its peak, too, so the parent must be small.
	if self, err := os.Executable(); err == nil && os.Getenv("ATOLL_TEST_SMALL") == "" {
		again := exec.Command(self, "-test.run=^TestVersionIsSmall$")
		again.Env = append(os.Environ(), "ATOLL_TEST_SMALL=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	bin := filepath.Join(t.TempDir(), "atoll")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(bin, "version")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("no usage")
	}
	if kib := maxRSS(usage); kib > 40<<10 {
		t.Errorf("atoll version took %d KiB of memory, want at most %d", kib, 40<<10)
	}
}

// maxRSS is in KiB; Darwin counts bytes.
func maxRSS(u *syscall.Rusage) int64 {
	if n := int64(u.Maxrss); n > 64<<20 {
		return n >> 10
	}
	return int64(u.Maxrss)
}
