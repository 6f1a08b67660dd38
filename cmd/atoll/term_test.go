package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"atoll/core/event"
	"atoll/core/modelstore"
)

// hostile holds every way in that B079 names: OSC 52, CSI, OSC 0, a bare C1
// byte, DCS, a UTF-8 C1 control and a reordering character.
const hostile = "a\x1b]52;c;ZWNobyBoaQ==\x07b\x1b[2Jc\x1b]0;t\x07d\x9b31me\x1bPq\x1b\\f\u009bg\u202eh\r\ni\rj\tk\n"

const hostileVisible = `a^[]52;c;ZWNobyBoaQ==^Gb^[[2Jc^[]0;t^Gd\x9b31me^[Pq^[\f<U+009B>g<U+202E>h` + "\ni^Mj\tk\n"

func TestVisibleWriter(t *testing.T) {
	for size := 1; size <= len(hostile); size++ {
		var b bytes.Buffer
		v := &visibleWriter{w: &b}
		for rest := hostile; rest != ""; {
			n := min(size, len(rest))
			v.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		v.Flush()
		if b.String() != hostileVisible {
			t.Fatalf("pieces of %d:\n got %q\nwant %q", size, b.String(), hostileVisible)
		}
	}
	var b bytes.Buffer
	v := &visibleWriter{w: &b}
	v.Write([]byte("grün \xe2\x82"))
	if b.String() != "grün " {
		t.Errorf("half a character was written: %q", b.String())
	}
	v.Flush()
	if b.String() != `grün \xe2\x82` {
		t.Errorf("flushed %q", b.String())
	}
}

func FuzzVisibleWriter(f *testing.F) {
	f.Add([]byte(hostile), 3)
	f.Add([]byte("\xf0\x9f\x98"), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size < 1 || size > 1000 {
			return
		}
		var whole, pieces bytes.Buffer
		v := &visibleWriter{w: &whole}
		v.Write(data)
		v.Flush()
		v = &visibleWriter{w: &pieces}
		for rest := data; len(rest) > 0; {
			n := min(size, len(rest))
			v.Write(rest[:n])
			rest = rest[n:]
		}
		v.Flush()
		if !bytes.Equal(whole.Bytes(), pieces.Bytes()) {
			t.Fatalf("pieces differ: %q and %q", whole.Bytes(), pieces.Bytes())
		}
		if !utf8.Valid(whole.Bytes()) {
			t.Fatalf("not UTF-8: %q", whole.Bytes())
		}
		for _, r := range whole.String() {
			if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r <= 0x9f) {
				t.Fatalf("control %U in %q", r, whole.String())
			}
		}
	})
}

func TestVisibleIsOneLine(t *testing.T) {
	if got := visible("a\nb\tc\rd"); got != "a^Jb\tc^Md" {
		t.Errorf("got %q", got)
	}
}

func TestEncodeJSONIsSafeForTerminals(t *testing.T) {
	in := "a\x1b[2J\x7f\u0080\u009b\u00a0é<&>"
	b, err := encodeJSON(map[string]string{"k": in})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.TrimSuffix(string(b), "\n") {
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			t.Errorf("control %U in %q", r, b)
		}
	}
	var back map[string]string
	if err := json.Unmarshal(b, &back); err != nil || back["k"] != in {
		t.Errorf("came back as %q, %v", back["k"], err)
	}
}

func TestMeter(t *testing.T) {
	steps := []modelstore.Progress{
		{Name: "m", Phase: "fetch", Source: "hub", Done: 0, Total: 200},
		{Name: "m", Phase: "fetch", Source: "hub", Done: 19, Total: 200},
		{Name: "m", Phase: "fetch", Source: "hub", Done: 100, Total: 200},
		{Name: "m", Phase: "fetch", Source: "hub", Done: 101, Total: 200},
		{Name: "m", Phase: "fetch", Source: "hub", Done: 200, Total: 200},
		{Name: "m", Phase: "verify", Done: 200, Total: 200},
	}
	var piped, tty bytes.Buffer
	clock := time.Unix(0, 0)
	now := func() time.Time { clock = clock.Add(time.Second); return clock }
	a, b := &meter{w: &piped, now: now}, &meter{w: &tty, tty: true, now: now}
	for _, s := range steps {
		a.show(s)
		b.show(s)
	}
	b.end()
	if want := "m: 0 % of 200 B\nm: 50 % of 200 B\nm: 100 % of 200 B\n"; piped.String() != want {
		t.Errorf("piped: %q, want %q", piped.String(), want)
	}
	if s := tty.String(); !strings.Contains(s, "\rfetch m [###############...............]  50 %  100 B of 200 B") || strings.Count(s, "\n") != 2 {
		t.Errorf("terminal: %q", s)
	}
}

// TestCallLineOfManyArguments: what is cut off is not put together first.
func TestCallLineOfManyArguments(t *testing.T) {
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, `,"k%d":%d`, i, i)
	}
	start := time.Now()
	line := callLine(event.ToolCall{Name: "read", Input: []byte("{" + b.String()[1:] + "}")})
	if d := time.Since(start); d > time.Second || len(line) > callColumn+3 || !strings.HasPrefix(line, "read k1=1 k2=2 ") {
		t.Errorf("%q after %v", line, d)
	}
}
