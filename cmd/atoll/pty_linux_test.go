package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openPTY returns both ends of a new pseudo-terminal.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	t.Cleanup(func() { master.Close(); slave.Close() })
	return master, slave
}

// terminal runs a command with all three streams on a pseudo-terminal, types
// input, and returns every byte that arrived.
func (p *place) terminal(t *testing.T, env []string, input string, args ...string) (code int, screen string) {
	t.Helper()
	master, slave := openPTY(t)
	cmd := p.command(t, args...)
	cmd.Env = append(append(cmd.Env, "TERM=xterm", "NO_COLOR="), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	if _, err := io.WriteString(master, input); err != nil {
		t.Fatal(err)
	}
	data, _ := io.ReadAll(master) // ends with EIO when the process is gone
	cmd.Wait()
	return cmd.ProcessState.ExitCode(), strings.ReplaceAll(string(data), "\r\n", "\n")
}

// TestHostileText is B079: nothing of a model, a file, a file name or an error
// reaches the terminal as a command.
func TestHostileText(t *testing.T) {
	p := newPlace(t)
	p.write(t, "bad.txt", "a\x1b]52;c;ZWNobyBoaQ==\x07b\x1b[2Jc\x1b]0;t\x07d\x9b31me\x1bPq\x1b\\f\n")
	p.write(t, "n\x1b[2Kame", "x")
	hostileJSON := `a\u001b]52;c;ZWNobyBoaQ==\u0007b\u001b[2Jc\u001b]0;t\u0007d\u009b31me\u001bPq\u001b\\f`
	model := p.script(t,
		`{"text":"one `+hostileJSON+`","chunk":1,"tool_calls":[{"name":"read","arguments":{"path":"bad.txt"}},{"name":"glob","arguments":{"pattern":"*"}},{"name":"read","arguments":{"path":"no`+hostileJSON+`"}},{"name":"wrong`+hostileJSON+`","arguments":{}}]}`,
		`{"tool_calls":[{"name":"edit","arguments":{"path":"bad.txt","old":"f\n","new":"g`+hostileJSON+`\n"}}]}`,
		`{"text":"two `+hostileJSON+`"}`,
	)
	for _, args := range [][]string{
		{"-p", "look", "-m", model, "--mode", "workspace-write"},
		{"session", "list"},
		{"session", "show"},
		{"-c", "-p", "again", "-m", model, "--mode", "workspace-write", "--output-format", "stream-json"},
	} {
		_, screen := p.terminal(t, []string{"NO_COLOR=1"}, "", args...)
		// Our own sequences: the spinner's, which erase a line.
		rest := strings.NewReplacer("\r\x1b[K", "", "\x1b[K", "", "\r", "").Replace(screen)
		for i, r := range rest {
			if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r <= 0x9f || r == 0xfffd) {
				t.Errorf("atoll %s: control %U reached the terminal: %q", strings.Join(args, " "), r, rest[max(0, i-30):min(len(rest), i+30)])
				break
			}
		}
		if args[0] == "-p" && (!strings.Contains(rest, "a^[]52;c;ZWNobyBoaQ==^Gb^[[2Jc^[]0;t^Gd<U+009B>31me^[Pq^[\\f")) {
			t.Errorf("the text is not visible: %q", rest)
		}
	}
}

func TestColours(t *testing.T) {
	p := newPlace(t)
	model := p.script(t, `{"tool_calls":[{"name":"write","arguments":{"path":"a.txt","content":"a\n"}}]}`, `{"text":"Done."}`)
	for _, tc := range []struct {
		env  string
		want bool
	}{{"", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		_, screen := p.terminal(t, []string{tc.env}, "", "-p", "go", "-m", model, "--mode", "workspace-write")
		if got := strings.Contains(screen, "\x1b[32m") || strings.Contains(screen, "\x1b[1m"); got != tc.want {
			t.Errorf("%q: colours %v, want %v: %q", tc.env, got, tc.want, screen)
		}
		if !strings.Contains(screen, "* write a.txt") || !strings.Contains(screen, "Done.\n") {
			t.Errorf("%q: screen %q", tc.env, screen)
		}
		os.Remove(p.workspace + "/a.txt")
	}
}

// TestDialogue types prompts on a terminal.
func TestDialogue(t *testing.T) {
	p := newPlace(t)
	model := p.script(t,
		`{"text":"First answer."}`,
		`{"tool_calls":[{"name":"write","arguments":{"path":"a.txt","content":"a\n"}}]}`,
		`{"text":"Second answer.","expect":{"contains":"one"}}`,
	)
	// The question about the workspace comes once.
	code, screen := p.terminal(t, nil, "y\nhelp\none\ntwo\nexit\n", "-m", model)
	if code != exitOK {
		t.Errorf("exit code %d: %s", code, screen)
	}
	for _, want := range []string{"May atoll change files below", "Ctrl-C stops a turn; flags: atoll --help", "First answer.\n", "* write a.txt", "Second answer.\n"} {
		if !strings.Contains(screen, want) {
			t.Errorf("screen lacks %q: %q", want, screen)
		}
	}
	if _, err := os.Stat(p.workspace + "/a.txt"); err != nil {
		t.Error(err)
	}
	code, screen = p.terminal(t, nil, "", "-p", "again", "-m", model)
	if code != exitOK || strings.Contains(screen, "May atoll") {
		t.Errorf("exit code %d, asked again: %q", code, screen)
	}
	if list := p.ok(t, "session", "list", "--json"); strings.Count(list, `"mode":"workspace-write"`) != 2 {
		t.Errorf("sessions: %s", list)
	}
	// Without a terminal the answer does not count: headless is read-only.
	if _, _, stderr := p.run(t, "-p", "again", "-m", p.script(t, `{"text":"x"}`)); stderr != "" {
		t.Errorf("stderr %q", stderr)
	}
	if list := p.ok(t, "session", "list", "--json"); strings.Count(list, `"mode":"read-only"`) != 1 {
		t.Errorf("sessions: %s", list)
	}
}

// TestPermissionOnTerminal asks a person, as a rule of theirs wants it.
func TestPermissionOnTerminal(t *testing.T) {
	for _, tc := range []struct {
		answer string
		code   int
		wrote  bool
	}{{"y\n", exitOK, true}, {"n\n", exitOK, false}, {"\n", exitOK, false}, {"s\n", exitOK, true}} {
		p := newPlace(t)
		config := p.home + "/.config/atoll"
		if err := os.MkdirAll(config, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config+"/config.jsonc", []byte(`{"permissions":[{"tool":"write","action":"ask"}]}`), 0o644); err != nil {
			t.Fatal(err)
		}
		model := p.script(t,
			`{"tool_calls":[{"name":"write","arguments":{"path":"a.txt","content":"a\n"}}]}`,
			`{"text":"So be it."}`)
		code, screen := p.terminal(t, nil, tc.answer, "-p", "go", "-m", model, "--mode", "workspace-write")
		_, err := os.Stat(p.workspace + "/a.txt")
		if code != tc.code || (err == nil) != tc.wrote || !strings.Contains(screen, "write a.txt? [y]es") {
			t.Errorf("%q: exit code %d, written %v: %q", tc.answer, code, err == nil, screen)
		}
	}
}

// TestMissingModelOnTerminal offers to fetch it, and takes no for an answer.
func TestMissingModelOnTerminal(t *testing.T) {
	p := newPlace(t)
	code, screen := p.terminal(t, []string{"ATOLL_MODELS=" + p.home + "/none"}, "n\n", "-p", "go", "--mode", "read-only")
	if code != exitModel || !strings.Contains(screen, "Fetch it (1.1 GB)? [Y/n]") || !strings.Contains(screen, "atoll model pull qwen2.5-coder-1.5b") {
		t.Errorf("exit code %d: %q", code, screen)
	}
}

// TestInterruptInDialogue: Ctrl-C stops the turn, the dialogue goes on.
func TestInterruptInDialogue(t *testing.T) {
	p := newPlace(t)
	model := p.script(t, slow, `{"text":"Second answer."}`)
	master, slave := openPTY(t)
	cmd := p.command(t, "-m", model, "--mode", "read-only")
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	screen := ""
	until := func(want string) {
		buf := make([]byte, 4096)
		for !strings.Contains(screen, want) {
			n, err := master.Read(buf)
			screen += string(buf[:n])
			if err != nil {
				t.Fatalf("waiting for %q: %v: %q", want, err, screen)
			}
		}
		screen = screen[strings.Index(screen, want)+len(want):]
	}
	until("> ")
	io.WriteString(master, "one\n")
	until("word word")
	io.WriteString(master, "\x03")
	until("interrupted")
	until("> ")
	io.WriteString(master, "two\n")
	until("Second answer.")
	until("> ")
	io.WriteString(master, "\x04")
	io.Copy(io.Discard, master)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
