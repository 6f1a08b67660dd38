//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// place is a home and a workspace for real processes.
type place struct {
	home, workspace, cache string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	cache, err := sharedCache()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{home: filepath.Join(t.TempDir(), "home"), workspace: filepath.Join(t.TempDir(), "workspace"), cache: cache}
	if err := os.MkdirAll(p.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(t, "notes.txt", "one\ntwo\nthree\n")
	return p
}

func (p *place) write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(p.workspace, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// script writes a script for the model, outside the workspace.
func (p *place) script(t *testing.T, steps ...string) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, strings.Join(steps, "\n"))
	return "script:" + f.Name()
}

// command makes a process of atoll. The test binary runs main when it is
// started under that name (see TestMain). A process that hangs is killed, and
// the test fails by what it then sees.
func (p *place) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = append([]string{"atoll"}, args...)
	cmd.Dir = p.workspace
	cmd.Env = append(os.Environ(), "ATOLL_HOME="+p.home, "ATOLL_CACHE="+p.cache, "HOME="+p.home)
	return cmd
}

// run runs a process to its end.
func (p *place) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := p.command(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (p *place) ok(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := p.run(t, args...)
	if code != 0 {
		t.Fatalf("atoll %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// line is what the tests look at in a line of stream-json.
type line struct {
	Seq     uint64 `json:"seq"`
	Type    string `json:"type"`
	Session string `json:"session"`
	Stop    string `json:"stop"`
}

func decodeLine(t *testing.T, s string) line {
	t.Helper()
	var l line
	if err := json.Unmarshal([]byte(s), &l); err != nil {
		t.Fatalf("not a JSON line: %v: %q", err, s)
	}
	return l
}

// longSteps is a turn with text, calls that read and write, and pauses.
var longSteps = []string{
	`{"text":"Looking at the files now, one after the other.","chunk":3,"sleep_ms":60,"tool_calls":[{"name":"ls","arguments":{}}]}`,
	`{"reasoning":"what is in the notes","chunk":4,"sleep_ms":30,"tool_calls":[{"name":"read","arguments":{"path":"notes.txt"}}]}`,
	`{"sleep_ms":20,"tool_calls":[{"name":"write","arguments":{"path":"out.txt","content":"a\nb\n"}},{"name":"read","arguments":{"path":"out.txt"}}]}`,
	`{"text":"` + strings.Repeat("All of it is done and here is the long answer. ", 40) + `","chunk":7,"sleep_ms":150}`,
}

// TestKillHammer kills a run at random moments. Whatever the moment: the
// session opens, every event that was printed is in the journal unchanged, what
// was cut off is closed, and the next prompt works.
func TestKillHammer(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 6
	}
	p := newPlace(t)
	model := p.script(t, longSteps...)
	next := p.script(t, `{"text":"Going on.","expect":{"contains":"go on please"}}`)

	// How long a whole run takes; it also compiles the tools.
	p.ok(t, "-p", "work", "-m", model, "--mode", "workspace-write")
	began := time.Now()
	p.ok(t, "-p", "work", "-m", model, "--mode", "workspace-write")
	whole := time.Since(began)

	random := rand.New(rand.NewPCG(7, 7))
	inTurn := 0
	for range rounds {
		cmd := p.command(t, "-p", "work", "-m", model, "--mode", "workspace-write", "--output-format", "stream-json")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(whole))), func() { cmd.Process.Kill() })
		data, err := io.ReadAll(stdout)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		timer.Stop()

		// A line that was cut by the kill was not received.
		lines := strings.Split(string(data), "\n")
		lines = lines[:len(lines)-1]
		if len(lines) == 0 {
			p.ok(t, "session", "list", "--json")
			continue
		}
		id := decodeLine(t, lines[0]).Session
		if id == "" {
			t.Fatalf("the first line names no session: %s", lines[0])
		}
		if decodeLine(t, lines[len(lines)-1]).Type != "result" {
			inTurn++
		}
		code, answer, stderr := p.run(t, "-r", id, "-p", "go on please", "-m", next)
		if code != 0 || answer != "Going on.\n" {
			t.Fatalf("session %s: next prompt: exit code %d, %q, %s", id, code, answer, stderr)
		}
		journal := strings.Split(p.ok(t, "session", "show", id, "--events"), "\n")
		for _, l := range lines {
			if seq := decodeLine(t, l).Seq; seq > 0 && (uint64(len(journal)) < seq || journal[seq-1] != l) {
				t.Fatalf("session %s: event %d was printed and is not in the journal:\n%s", id, seq, l)
			}
		}
	}
	if inTurn == 0 {
		t.Error("no kill hit a turn")
	}
	t.Logf("%d of %d kills hit a turn", inTurn, rounds)
}

// TestEightAtOnce runs eight processes in one workspace.
func TestEightAtOnce(t *testing.T) {
	p := newPlace(t)
	model := p.script(t, longSteps...)
	var wg sync.WaitGroup
	for i := range 8 {
		cmd := p.command(t, "-p", fmt.Sprintf("task %d", i), "-m", model, "--mode", "workspace-write", "--output-format", "json")
		wg.Add(1)
		go func() {
			defer wg.Done()
			out, err := cmd.Output()
			var l line
			if err != nil || json.Unmarshal(out, &l) != nil || l.Stop != "end" {
				t.Errorf("run %d: %v\n%s", i, err, out)
			}
		}()
	}
	wg.Wait()
	var list []struct {
		ID, Title, Stop string
	}
	if err := json.Unmarshal([]byte(p.ok(t, "session", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, s := range list {
		titles[s.Title] = true
		if s.Stop != "end" {
			t.Errorf("session %s stopped with %q", s.ID, s.Stop)
		}
	}
	if len(list) != 8 || len(titles) != 8 {
		t.Errorf("%d sessions, titles %v", len(list), titles)
	}
}

// slow is a step that streams for a minute.
var slow = `{"text":"` + strings.Repeat("word ", 600) + `","chunk":5,"sleep_ms":60000}`

func TestSignalsStopTheTurn(t *testing.T) {
	for _, tc := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, exitInterrupted}, {syscall.SIGTERM, exitTerminated}} {
		for _, format := range []string{formatText, formatJSON, formatStream} {
			t.Run(fmt.Sprintf("%v %s", tc.signal, format), func(t *testing.T) {
				p := newPlace(t)
				cmd := p.command(t, "-p", "write much", "-m", p.script(t, slow), "--output-format", format)
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				p.waitForText(t)
				cmd.Process.Signal(tc.signal)
				cmd.Wait()
				if code := cmd.ProcessState.ExitCode(); code != tc.code {
					t.Errorf("exit code %d, want %d; %s", code, tc.code, stderr.String())
				}
				if format != formatText {
					lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
					if l := decodeLine(t, lines[len(lines)-1]); l.Type != "result" || l.Stop != "cancelled" {
						t.Errorf("last line %s", lines[len(lines)-1])
					}
				}
				list := p.ok(t, "session", "list", "--json")
				if !strings.Contains(list, `"stop":"cancelled"`) {
					t.Errorf("sessions: %s", list)
				}
				if out := p.ok(t, "-c", "-p", "again", "-m", p.script(t, `{"text":"Here."}`)); out != "Here.\n" {
					t.Errorf("next prompt: %q", out)
				}
			})
		}
	}
}

// waitForText returns when the journal of the place's only session holds text of
// the model: the turn is under way.
func (p *place) waitForText(t *testing.T) {
	t.Helper()
	for range 3000 {
		found := false
		filepath.WalkDir(filepath.Join(p.home, "sessions"), func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".log") {
				if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(`"text_delta"`)) {
					found = true
				}
			}
			return nil
		})
		if found {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no text appeared in the journal")
}

// TestReaderGoesAway is B063: `atoll ... | head -n 1`.
func TestReaderGoesAway(t *testing.T) {
	p := newPlace(t)
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "line %d\\n", i)
	}
	model := p.script(t, `{"text":"`+text.String()+`","chunk":9,"sleep_ms":2000}`)
	for _, format := range []string{formatStream, formatJSON, formatText} {
		t.Run(format, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := p.command(t, "-p", "200 lines", "-m", model, "--output-format", format)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			if format == formatStream {
				first, err := bufio.NewReader(r).ReadString('\n')
				if err != nil || decodeLine(t, first).Type == "" {
					t.Errorf("first line %q, %v", first, err)
				}
			}
			r.Close()
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitPipe {
				t.Errorf("exit code %d", code)
			}
			if stderr.Len() > 0 {
				t.Errorf("stderr: %s", stderr.String())
			}
		})
	}
	files, _ := os.ReadDir(p.workspace)
	if len(files) != 1 {
		t.Errorf("files in the workspace: %v", files)
	}
	if list := p.ok(t, "session", "list", "--json"); !strings.Contains(list, `"stop":"cancelled"`) {
		t.Errorf("the session is not marked as cut off: %s", list)
	}
}

// TestStdinLeftOpen: a process without a terminal must not wait for input, also
// when a permission is missing.
func TestStdinLeftOpen(t *testing.T) {
	p := newPlace(t)
	for _, tc := range []struct {
		name  string
		steps []string
		code  int
	}{
		{"answer", []string{`{"text":"Hi."}`}, exitOK},
		{"permission", []string{
			`{"tool_calls":[{"name":"write","arguments":{"path":"x.txt","content":"x"}}]}`,
			`{"text":"I may not write."}`,
		}, exitPermission},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close() // after the process has ended
			cmd := p.command(t, "-p", "hello", "-m", p.script(t, tc.steps...))
			cmd.Stdin = r
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d\n%s", code, tc.code, out)
			}
			if _, err := os.Stat(filepath.Join(p.workspace, "x.txt")); err == nil {
				t.Error("the file was written")
			}
		})
	}
}

// TestPromptFromStdin: "-" reads the prompt, and only that does.
func TestPromptFromStdin(t *testing.T) {
	p := newPlace(t)
	cmd := p.command(t, "-p", "-", "-m", p.script(t, `{"text":"ok","expect":{"contains":"from a pipe"}}`))
	cmd.Stdin = strings.NewReader("this comes\nfrom a pipe\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	cmd = p.command(t, "-p", "-", "-m", p.script(t, `{"text":"ok"}`))
	cmd.Stdin = strings.NewReader(" \n")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitUsage {
		t.Errorf("empty prompt: exit code %d\n%s", cmd.ProcessState.ExitCode(), out)
	}
}

// TestSignalEndsARead: a signal also ends a program that waits for standard input.
func TestSignalEndsARead(t *testing.T) {
	p := newPlace(t)
	for _, args := range [][]string{
		{"-p", "-", "-m", p.script(t, `{"text":"ok"}`)},
		{"tool", "run", "ls", "--args", "-"},
		{"model", "parse", "--family", "hermes"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close() // after the process has ended
			cmd := p.command(t, args...)
			cmd.Stdin = r
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// More than a pipe holds: this returns when the program reads.
			if _, err := w.Write(bytes.Repeat([]byte("\n"), 80<<10)); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			cmd.Process.Signal(syscall.SIGINT)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || time.Since(start) > stopTime/2 {
				t.Errorf("exit code %d after %v\n%s", code, time.Since(start), stderr.String())
			}
		})
	}
}

// TestDiskFull is B055. It needs a small file system of its own.
func TestDiskFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs unshare and tmpfs (Linux)")
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if _, err := exec.LookPath("unshare"); err != nil && os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	// A kernel that forbids namespaces is nothing that could be installed; core/store has the same fault in the process.
	if out, err := exec.Command("unshare", "-rm", "sh", "-c", `mount -t tmpfs t "$HOME"`).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here: %v: %s", err, out)
	}
	p := newPlace(t)
	p.write(t, "big.txt", strings.Repeat(strings.Repeat("x", 79)+"\n", 100))
	// Text that does not compress fills the disk in some fifty steps. No two steps
	// are alike, or the loop guard would end the turn.
	random := rand.NewChaCha8([32]byte{7})
	noise := make([]byte, 48<<10)
	var steps []string
	for i := range 200 {
		random.Read(noise)
		steps = append(steps, fmt.Sprintf(`{"text":"%x","tool_calls":[{"name":"read","arguments":{"path":"big.txt","offset":%d}}]}`, noise, 1+i%90))
	}
	model := p.script(t, steps...)
	next := p.script(t, `{"text":"going on"}`)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "atoll")
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	cmd := p.command(t)
	sh := exec.CommandContext(t.Context(), "unshare", "-rm", "sh", "-c", `
mkdir -p "$ATOLL_HOME" && mount -t tmpfs -o size=24m t "$ATOLL_HOME" || exit 99
head -c 20m /dev/zero > "$ATOLL_HOME/fill"
"$BIN" -p work -m "$MODEL" --max-steps 5000 --output-format json; echo "rc=$?"
rm "$ATOLL_HOME/fill"
"$BIN" session list --json
"$BIN" -c -p "go on" -m "$NEXT"; echo "rc=$?"
`)
	sh.Dir, sh.Env = p.workspace, append(cmd.Env, "BIN="+bin, "MODEL="+model, "NEXT="+next)
	var stdout, stderr bytes.Buffer
	sh.Stdout, sh.Stderr = &stdout, &stderr
	if err := sh.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != 5 {
		t.Fatalf("stdout:\n%s\nstderr:\n%s", stdout.String(), stderr.String())
	}
	if !strings.Contains(lines[0], `"type":"result"`) || !strings.Contains(lines[0], "disk") || lines[1] != "rc=1" {
		t.Errorf("the run: %s\n%s", lines[0], lines[1])
	}
	if !strings.Contains(stderr.String(), "disk") {
		t.Errorf("stderr: %s", stderr.String())
	}
	if lines[3] != "going on" || lines[4] != "rc=0" {
		t.Errorf("afterwards: %s\n%s\n%s", lines[2], lines[3], lines[4])
	}
}
