package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"atoll/core/event"
	"atoll/core/permission"
	"atoll/core/service"
)

// view shows a turn: it is a projection of the event stream. All calls come from
// one goroutine.
type view interface {
	// show takes the next event.
	show(e event.Event) error
	// tick is called ten times a second while nothing else happens.
	tick()
	// finish shows how the run ended. It is called once, also when there was no turn.
	finish(r *service.Result) error
}

// The output formats.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatStream = "stream-json"
)

func (p *program) newView(format string) (view, error) {
	switch format {
	case formatText:
		return &textView{
			out: p.screen, err: &visibleWriter{w: p.stderr}, raw: p.stderr,
			stream: p.stdoutTTY, shared: p.stdoutTTY && p.stderrTTY,
			spin:  p.stderrTTY && p.getenv("TERM") != "dumb",
			color: p.color(p.stderrTTY), now: time.Now, start: true,
		}, nil
	case formatJSON:
		return &jsonView{w: p.stdout}, nil
	case formatStream:
		return &jsonView{w: p.stdout, stream: true}, nil
	}
	return nil, usagef("--output-format %q: there are text, json and stream-json", format)
}

// jsonView prints one object, or one event a line and then that object.
type jsonView struct {
	w      io.Writer
	stream bool
}

func (v *jsonView) tick() {}

func (v *jsonView) show(e event.Event) error {
	if !v.stream {
		return nil
	}
	return v.line(e)
}

func (v *jsonView) finish(r *service.Result) error { return v.line(r) }

func (v *jsonView) line(x any) error {
	b, err := encodeJSON(x)
	if err != nil {
		return err
	}
	_, err = v.w.Write(b)
	return err
}

// textView is for people: the answer on standard output, what happens on
// standard error. On a terminal the text streams; elsewhere standard output
// gets the final answer and nothing else.
type textView struct {
	out    io.Writer // standard output
	err    io.Writer // standard error; what is written is made visible
	raw    io.Writer // standard error, for our own control sequences
	stream bool      // standard output is a terminal
	shared bool      // both are: they are one screen
	spin   bool
	color  bool
	now    func() time.Time

	start    bool      // the screen's cursor is at the start of a line
	spinning bool      // a spinner stands in the line
	activity string    // what the spinner says
	since    time.Time // when the activity began
	frame    int
	streamed bool   // the current message's text was shown as it came
	calls    []call // that have no result yet
}

type call struct{ id, line string }

const (
	diffLines  = 80  // lines of a diff that are shown
	callColumn = 100 // characters of a call's line
)

func (v *textView) show(e event.Event) error {
	switch b := e.Body.(type) {
	case event.StepStarted:
		v.streamed = false
		v.busy("thinking")
	case event.Progress:
		if b.Done < b.Total {
			v.busy(fmt.Sprintf("reading the prompt, %d of %d tokens", b.Done, b.Total))
		} else {
			v.busy("thinking")
		}
	case event.TextDelta:
		if !v.stream {
			v.busy("writing")
			return nil
		}
		v.clear()
		v.activity = ""
		v.streamed = true
		v.start = strings.HasSuffix(b.Text, "\n")
		_, err := io.WriteString(v.out, b.Text)
		return err
	case event.ReasoningDelta:
		v.busy("thinking")
	case event.ToolInputDelta:
		v.busy("writing a call of " + visible(b.Name))
	case event.ToolCall:
		v.calls = append(v.calls, call{b.CallID, callLine(b)})
	case event.ToolStarted:
		if i := slices.IndexFunc(v.calls, func(c call) bool { return c.id == b.CallID }); i >= 0 {
			v.busy("running " + visible(v.calls[i].line))
		}
	case event.ToolResult:
		v.result(b)
		v.busy("thinking")
	case event.PermissionResolved:
		if b.Outcome == string(permission.DeniedNobodyToAsk) {
			v.say("dim", fmt.Sprintf("%s: permission was needed and nobody could be asked", b.Tool))
		}
	case event.Notice:
		v.say("dim", b.Text)
	case event.ContextOverflow:
		if b.Prompt > 0 {
			v.say("red", fmt.Sprintf("the context is full: the prompt has %d tokens, the window %d", b.Prompt, b.Max))
		} else {
			v.say("red", fmt.Sprintf("the context is full: the window has %d tokens", b.Max))
		}
	case event.TurnFinished:
		v.clear()
		v.activity = ""
	}
	return nil
}

// callLine is a call in one line: `edit main.go old="a > b" new="a >= b"`.
func callLine(c event.ToolCall) string {
	if c.Raw != "" {
		return shorten(c.Name+" (not understood) "+c.Raw, callColumn)
	}
	line := c.Name
	dec := json.NewDecoder(bytes.NewReader(c.Input))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return shorten(line+" "+string(c.Input), callColumn)
	}
	for len(line) <= callColumn && dec.More() { // more would be cut
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			break
		}
		var s string
		if json.Unmarshal(value, &s) == nil && (key == "path" || key == "pattern") {
			line += " " + s
			continue
		}
		if s := string(value); s == `""` || s == "0" || s == "false" || s == "null" {
			continue // a small model writes down what it leaves as it is
		}
		line += fmt.Sprintf(" %v=%s", key, shorten(string(value), 40))
	}
	return shorten(line, callColumn)
}

// shorten cuts a text at a character boundary and marks the cut.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

func (v *textView) result(r event.ToolResult) {
	line := r.Name
	if i := slices.IndexFunc(v.calls, func(c call) bool { return c.id == r.CallID }); i >= 0 {
		line = v.calls[i].line
		v.calls = slices.Delete(v.calls, i, i+1)
	}
	if r.IsError {
		first, _, more := strings.Cut(strings.TrimSpace(r.Output), "\n")
		if more { // for the model: the file's text
			first = strings.TrimSuffix(first, ":")
		}
		v.say("red", "* "+line)
		v.say("red", "  "+shorten(first, 2*callColumn))
	} else {
		v.say("bold", "* "+line)
	}
	v.diff(r.Diff)
}

func (v *textView) diff(diff string) {
	if diff == "" {
		return
	}
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i, line := range lines {
		if i == diffLines {
			v.say("dim", fmt.Sprintf("  ... %d more lines", len(lines)-i))
			return
		}
		style := ""
		switch {
		case strings.HasPrefix(line, "+"):
			style = "green"
		case strings.HasPrefix(line, "-"):
			style = "red"
		case strings.HasPrefix(line, "@@"):
			style = "cyan"
		}
		v.say(style, "  "+shorten(line, 500))
	}
}

// say writes a line to standard error.
func (v *textView) say(style, line string) {
	v.clear()
	if v.shared && !v.start {
		fmt.Fprintln(v.raw)
		v.start = true
	}
	code := map[string]string{"bold": "1", "dim": "2", "red": "31", "green": "32", "cyan": "36"}[style]
	if v.color && code != "" {
		fmt.Fprintf(v.raw, "\x1b[%sm", code)
	}
	fmt.Fprint(v.err, visible(line))
	if v.color && code != "" {
		fmt.Fprint(v.raw, "\x1b[0m")
	}
	fmt.Fprintln(v.raw)
}

// busy says what the spinner shows.
func (v *textView) busy(activity string) {
	if v.activity == "" {
		v.since = v.now()
	}
	v.activity = activity
}

func (v *textView) tick() {
	if !v.spin || v.activity == "" || (v.shared && !v.start) {
		return
	}
	v.frame++
	v.spinning = true
	fmt.Fprintf(v.raw, "\r%c %s (%d s)\x1b[K", `|/-\`[v.frame%4], shorten(v.activity, callColumn), int(v.now().Sub(v.since).Seconds()))
}

// clear takes the spinner away.
func (v *textView) clear() {
	if v.spinning {
		fmt.Fprint(v.raw, "\r\x1b[K")
		v.spinning = false
	}
}

func (v *textView) finish(r *service.Result) error {
	v.clear()
	v.activity = ""
	if f, ok := v.out.(*visibleWriter); ok {
		if err := f.Flush(); err != nil {
			return err
		}
	}
	switch {
	case v.stream && v.streamed:
		if !v.start {
			v.start = true
			_, err := io.WriteString(v.out, "\n")
			return err
		}
	case r.Text != "":
		_, err := io.WriteString(v.out, strings.TrimSuffix(r.Text, "\n")+"\n")
		return err
	}
	return nil
}
