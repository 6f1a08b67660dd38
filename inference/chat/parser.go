package chat

import (
	"bytes"
	"slices"
	"strings"
)

// Parser reads one answer of a model while it streams in. Text goes out at once
// unless it could still become part of a call; wherever the stream is cut, the
// same answer gives the same events, up to how text is divided between deltas.
type Parser struct {
	tools   toolSet
	think   bool // a </think> without its opening tag ends reasoning
	ends    []string
	events  []Event
	delta   []byte // text of the delta being collected, of kind deltaOf
	deltaOf EventKind

	buf  []byte // not yet consumed
	mode func(p *Parser, final bool) bool
	scan *callScan // of the region that is held back

	// Of text mode.
	hold      []byte // blanks and end tokens that may turn out to be trailing
	heldEnd   bool   // hold has an end token in it
	begun     bool   // text has been emitted since the last reasoning
	anyText   bool   // text has been emitted at all
	afterCall bool   // the last thing emitted was a call
	lineStart bool
	ticks     int  // length of the run of backticks that opened inline code, 0 outside
	nestFence bool // within a fenced block being read as an answer of its own: no fences

	// Of a held block or fence.
	open string // the tag or fence line that opened it
	near bool   // the tag is only like the family's
	body int    // offset behind open
	info string // of a fence
	fn   *xmlCall
	sent int // bytes of the arguments sent as deltas
	// started are the calls of this block whose start was sent.
	started map[int]bool
	region  int // end of the complete fenced blocks held so far
	blocks  []fenceBlock
	cut     bool // the answer hit a limit: missing brackets are not repaired
	musing  bool // reasoning has been emitted: blanks behind it count

	calls int // calls reported so far
}

// fenceBlock is a complete fenced block that is held back: its body, and the
// offset behind its closing fence.
type fenceBlock struct {
	span
	end int
}

// NewParser makes a parser for one answer. tools are the ones offered.
func (f *Format) NewParser(tools []Tool) *Parser {
	p := newParser(tools, f.think)
	for _, t := range f.opts.ControlTokens {
		if strings.HasPrefix(t, "<|") && strings.HasSuffix(t, "|>") && !slices.Contains(p.ends, t) && !isOpener(t) {
			p.ends = append(p.ends, t)
		}
	}
	return p
}

func newParser(tools []Tool, think bool) *Parser {
	return &Parser{tools: newToolSet(tools), think: think, ends: defaultEnds, mode: (*Parser).text, lineStart: true}
}

// Tags that open a call. Only the first is the family's own; what the others open
// is a call only if it reads as one.
var openers = []string{
	"<tool_call>", "<tool_calls>", "<toolcall>", "<tool-call>", "<|tool_call|>", "<|tool_call>", "<|tool_call_start|>",
	"<function_call>", "<function_calls>", "<function-call>", "<functioncall>", "<tools>", "<tool>", "<tool_use>", "<|python_tag|>",
	"[TOOL_CALLS]", "[TOOL_CALL]",
}

var closers = []string{
	"</tool_call>", "</tool_calls>", "</toolcall>", "</tool-call>", "<|/tool_call|>", "<tool_call|>", "<|tool_call_end|>",
	"</function_call>", "</function_calls>", "</function-call>", "</functioncall>", "</tools>", "</tool>", "</tool_use>", "</function>",
	"[/TOOL_CALLS]", "[/TOOL_CALL]",
}

// defaultEnds are end tokens that leak into text.
var defaultEnds = []string{"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>", "</s>"}

const (
	thinkOpen   = "<think>"
	thinkClose  = "</think>"
	functionTag = "<function="
)

func isOpener(s string) bool { return slices.Contains(openers, s) || slices.Contains(closers, s) }

// Push adds text to the answer.
func (p *Parser) Push(text string) []Event {
	p.buf = append(p.buf, text...)
	p.drive(false)
	return p.take()
}

// Close ends the answer.
func (p *Parser) Close() []Event {
	p.drive(true)
	return p.take()
}

// CloseCut ends an answer that was stopped by a limit. A call whose closing brackets
// are missing may lack arguments then, so it is malformed.
func (p *Parser) CloseCut() []Event {
	p.cut = true
	return p.Close()
}

func (p *Parser) drive(final bool) {
	for p.mode(p, final) {
	}
	if final {
		if len(p.buf) > 0 {
			panic("BUG: chat parser ended with text left")
		}
		p.finishText()
	}
}

func (p *Parser) take() []Event {
	p.endDelta()
	ev := p.events
	p.events = nil
	return ev
}

// emit adds an event. Text and reasoning are collected, so that a run of them is one
// event.
func (p *Parser) emit(e Event) {
	if e.Kind > EventReasoning {
		p.endDelta()
		p.events = append(p.events, e)
		return
	}
	if p.deltaOf != e.Kind {
		p.endDelta()
		p.deltaOf = e.Kind
	}
	p.delta = append(p.delta, e.Text...)
}

func (p *Parser) endDelta() {
	if len(p.delta) > 0 {
		p.events = append(p.events, Event{Kind: p.deltaOf, Text: string(p.delta)})
		p.delta = p.delta[:0]
	}
}

// start reports that call at of the block has begun.
func (p *Parser) start(at int, name string) {
	if p.started == nil {
		p.started = map[int]bool{}
	}
	p.started[at] = true
	p.emit(Event{Kind: EventToolStart, Index: p.calls + at, Name: name})
}

// drop consumes n bytes.
func (p *Parser) drop(n int) { p.buf = p.buf[n:] }

// flush lets go of what was held back because it could have been trailing.
func (p *Parser) flush() {
	switch {
	case p.afterCall && p.anyText:
		// Text around a call stays apart, however the call was set off.
		p.emit(Event{Kind: EventText, Text: "\n\n" + strings.TrimLeft(string(p.hold), " \t\r\n")})
	case p.afterCall:
		p.emit(Event{Kind: EventText, Text: strings.TrimLeft(string(p.hold), " \t\r\n")})
	case len(p.hold) > 0:
		p.emit(Event{Kind: EventText, Text: string(p.hold)})
	}
	p.hold, p.heldEnd = p.hold[:0], false
	p.afterCall = false
}

func (p *Parser) plain(s []byte) {
	if len(s) == 0 {
		return
	}
	p.flush()
	p.emit(Event{Kind: EventText, Text: string(s)})
	p.begun, p.anyText = true, true
	p.lineStart = s[len(s)-1] == '\n'
}

// finishText decides about what is still held when the answer ends: blanks stay
// as the model wrote them, unless a call or an end token made them layout.
func (p *Parser) finishText() {
	if p.begun && !p.afterCall && !p.heldEnd && len(p.hold) > 0 {
		p.emit(Event{Kind: EventText, Text: string(p.hold)})
	}
	p.hold = nil
}

// dropLayout forgets blanks in front of a call.
func (p *Parser) dropLayout() { p.hold, p.heldEnd = p.hold[:0], false }

// match looks for one of the marks at the start of b: the longest that is there.
// wait says that more text could make it another one.
func match(b []byte, final bool, lists ...[]string) (mark string, wait bool) {
	for _, list := range lists {
		for _, m := range list {
			if len(b) < len(m) {
				wait = wait || !final && strings.HasPrefix(m, string(b))
			} else if len(m) > len(mark) && string(b[:len(m)]) == m {
				mark = m
			}
		}
	}
	return mark, wait
}

var thinkMarks = []string{thinkOpen, thinkClose, functionTag}

// text is the mode of plain text: everything is emitted until something may begin a
// call.
func (p *Parser) text(final bool) bool {
	for len(p.buf) > 0 {
		c := p.buf[0]
		switch {
		case isBlank(c):
			p.hold = append(p.hold, c)
			if c == '\n' {
				p.lineStart, p.ticks = true, 0
			}
			p.drop(1)
			continue
		case c == '`':
			n := len(p.buf) - len(bytes.TrimLeft(p.buf, "`"))
			if n == len(p.buf) && !final {
				return false
			}
			if n >= 3 && p.lineStart && !p.nestFence {
				p.open = strings.Repeat("`", n)
				p.beginHeld((*Parser).fence, n)
				return true
			}
			switch p.ticks {
			case 0:
				p.ticks = n
			case n:
				p.ticks = 0
			}
			p.plain(p.buf[:n])
			p.drop(n)
			continue
		case (c == '<' || c == '[') && p.ticks == 0:
			mark, wait := match(p.buf, final, openers, closers, p.ends, thinkMarks)
			if wait {
				return false
			}
			if mark != "" && p.mark(mark) {
				return true
			}
		}
		if (c == '{' || c == '[') && !p.begun && !p.afterCall && p.calls == 0 {
			p.open = ""
			p.beginHeld((*Parser).bare, 0)
			return true
		}
		n := 1
		for n < len(p.buf) && !isBlank(p.buf[n]) && p.buf[n] != '`' && p.buf[n] != '<' && p.buf[n] != '[' {
			n++
		}
		p.plain(p.buf[:n])
		p.drop(n)
	}
	return false
}

// beginHeld starts a region that is held back.
func (p *Parser) beginHeld(mode func(*Parser, bool) bool, body int) {
	p.mode, p.body = mode, body
	p.scan = newCallScan()
	p.scan.pos = body
	p.sent, p.started, p.region, p.blocks, p.fn = 0, nil, 0, nil, nil
}

// mark acts on a mark at the start of the text. false: it is only text.
func (p *Parser) mark(m string) bool {
	switch {
	case m == thinkOpen:
		if p.begun || p.calls > 0 {
			return false
		}
		p.dropLayout()
		p.drop(len(m))
		p.mode, p.musing = (*Parser).reasoning, false
		return true
	case m == thinkClose:
		if !p.think || p.calls > 0 || !p.begun {
			return false
		}
		p.dropLayout()
		p.emit(Event{Kind: EventRecast})
		p.begun, p.anyText, p.think = false, false, false
		p.drop(len(m))
		p.leadAfterThink()
		return true
	case slices.Contains(p.ends, m):
		p.hold = append(p.hold, m...)
		p.heldEnd = true
		p.drop(len(m))
		return true
	case slices.Contains(closers, m):
		if !p.afterCall {
			return false
		}
		p.drop(len(m)) // one too many
		return true
	}
	p.open, p.near = m, m != openers[0]
	n := len(m)
	if m == functionTag {
		n = 0
	}
	p.beginHeld((*Parser).lead, n)
	return true
}

// lead is the mode behind an opening tag: what comes first decides how the block
// is read.
func (p *Parser) lead(final bool) bool {
	b := p.buf[p.scan.pos:]
	n := len(b) - len(bytes.TrimLeft(b, " \t\r\n"))
	p.scan.pos += n
	b = b[n:]
	if len(b) == 0 {
		if !final {
			return false
		}
		return p.endBlock(len(p.buf), len(p.buf), false)
	}
	switch b[0] {
	case '`':
		// A fence within the tags is layout: skip its line.
		k := len(b) - len(bytes.TrimLeft(b, "`"))
		i := bytes.IndexByte(b, '\n')
		if i < 0 && !final && !bytes.ContainsAny(b[k:], "{[<`") {
			return false
		}
		if j := bytes.IndexAny(b[k:], "{[<\n"); j >= 0 {
			p.scan.pos += k + j
			return true
		}
		p.scan.pos += len(b)
		return true
	case '{', '[':
		if mark, wait := match(b, final, openers); wait {
			return false
		} else if mark == "" {
			p.mode = (*Parser).block
			return true
		}
	case '<':
		mark, wait := match(b, final, closers, openers, thinkMarks)
		if wait {
			return false
		}
		switch {
		case mark == functionTag:
			p.mode = (*Parser).xml
			return true
		case slices.Contains(closers, mark):
			return p.endBlock(p.scan.pos, p.scan.pos+len(mark), true)
		case slices.Contains(openers, mark) && !p.near && mark != openers[0]:
			p.scan.pos += len(mark) // another family's tag within ours
			return true
		}
	}
	if p.near {
		p.release(p.body)
		return true
	}
	p.mode = (*Parser).prose
	return true
}

// release gives up a held region: its first n bytes are text.
func (p *Parser) release(n int) {
	p.mode = (*Parser).text
	p.plain(p.buf[:n])
	p.drop(n)
}

// prose is the mode of a block that holds no JSON: up to the end tag.
func (p *Parser) prose(final bool) bool {
	for p.scan.pos < len(p.buf) {
		i := bytes.IndexByte(p.buf[p.scan.pos:], '<')
		if i < 0 {
			p.scan.pos = len(p.buf)
			break
		}
		p.scan.pos += i
		mark, wait := match(p.buf[p.scan.pos:], final, closers[:1], openers[:1])
		if wait {
			return false
		}
		switch mark {
		case closers[0]:
			return p.endBlock(p.scan.pos, p.scan.pos+len(mark), true)
		case openers[0]:
			return p.endBlock(p.scan.pos, p.scan.pos, true)
		}
		p.scan.pos++
	}
	if !final {
		return false
	}
	return p.endBlock(len(p.buf), len(p.buf), false)
}

// block is the mode of JSON behind an opening tag.
func (p *Parser) block(final bool) bool {
	for {
		stop := p.scan.step(p.buf, final)
		p.progress()
		switch stop {
		case scanMore:
			if !final {
				return false
			}
			if p.scan.quote != 0 {
				return p.recover()
			}
			return p.endBlock(len(p.buf), len(p.buf), false)
		case scanText:
			// A whole value and then text: the end tag is missing.
			return p.endBlock(p.scan.pos, p.scan.pos, true)
		case scanMark:
			if p.buf[p.scan.pos] == '`' {
				p.scan.pos++ // a fence within the tags
				continue
			}
			mark, wait := match(p.buf[p.scan.pos:], final, closers, openers, p.ends)
			switch {
			case wait:
				return false
			case slices.Contains(closers, mark), slices.Contains(p.ends, mark):
				return p.endBlock(p.scan.pos, p.scan.pos+len(mark), true)
			case mark != "", p.scan.whole():
				return p.endBlock(p.scan.pos, p.scan.pos, true)
			}
			p.scan.sig = '<'
			p.scan.pos++
		}
	}
}

// recover handles a block whose last string has no end: what stands before the
// first end tag is lost, the rest is an answer again.
func (p *Parser) recover() bool {
	if i := bytes.Index(p.buf[p.body:], []byte(closers[0])); i >= 0 {
		return p.endBlock(p.body+i, p.body+i+len(closers[0]), true)
	}
	return p.endBlock(len(p.buf), len(p.buf), false)
}

// progress reports the start of a call and the arguments seen so far.
func (p *Parser) progress() {
	s := p.scan
	if !s.named || p.near {
		return
	}
	if !p.started[s.current] {
		tool := p.tools.find(s.name)
		if tool == nil {
			return
		}
		p.start(s.current, tool.name)
		p.sent = 0
	}
	if s.argsFrom < 0 {
		return
	}
	to := s.pos
	if s.argsTo >= 0 {
		to = s.argsTo
	}
	if from := max(s.argsFrom, p.sent); from < to {
		p.emit(Event{Kind: EventToolDelta, Index: p.calls + s.current, Text: string(p.buf[from:to])})
		p.sent = to
	}
}

// endBlock reads the block whose content ends at to and consumes up to next. ended
// says that something closed it.
func (p *Parser) endBlock(to, next int, ended bool) bool {
	content := string(p.buf[p.body:to])
	raw := string(p.buf[:next])
	events, isCall := p.readJSON(content, raw, ended)
	if !isCall && p.near {
		p.release(max(p.body, 1))
		return true
	}
	if !isCall {
		events = []Event{{Kind: EventToolError, Raw: raw, Reason: Malformed, Message: malformedMessage}}
	}
	p.drop(next)
	p.report(events)
	p.mode = (*Parser).text
	return true
}

const malformedMessage = `the call could not be read: write {"name": ..., "arguments": {...}} as one JSON object`

// readJSON reads the calls in content. isCall is false where there is no sign of
// one.
func (p *Parser) readJSON(content, raw string, ended bool) (events []Event, isCall bool) {
	values, end := looseAll(stripFence(content), ended)
	if end == looseClosed && p.cut && !ended {
		// The value that lacks its brackets may lack more.
		values, end = values[:len(values)-1], looseCut
	}
	for _, v := range values {
		calls, ok := p.tools.callsIn(v)
		for _, c := range calls {
			events = append(events, p.tools.finish(c, raw))
			isCall = isCall || c.tool != nil || c.explicit
		}
		if !ok {
			events = append(events, Event{Kind: EventToolError, Raw: raw, Reason: Malformed, Message: malformedMessage})
		}
	}
	if end >= looseCut {
		e := Event{Kind: EventToolError, Raw: raw, Reason: Malformed, Message: malformedMessage}
		s := newCallScan()
		for stop := scanName; stop == scanName || stop == scanObject; {
			stop = s.step([]byte(content), true)
		}
		if t := p.tools.find(s.name); s.named && t != nil {
			e.Name = t.name
			e.Message = "the call of " + t.name + " is not complete, it was not run"
			isCall = true
		}
		events = append(events, e)
	}
	return events, isCall
}

// stripFence takes off the fence around or behind a value.
func stripFence(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "`") {
		if i := strings.IndexAny(s, "{[\n"); i >= 0 {
			s = s[i:]
		}
	}
	return strings.TrimRight(strings.TrimSpace(s), "`")
}

// report emits the results of a block.
func (p *Parser) report(events []Event) {
	if len(events) == 0 {
		return
	}
	p.dropLayout()
	for i, e := range events {
		e.Index = p.calls + i
		if e.Kind == EventToolCall && !p.started[i] {
			p.start(i, e.Name)
		}
		p.emit(e)
	}
	p.calls += len(events)
	p.afterCall = true
	p.lineStart, p.ticks = false, 0
	p.started = nil
}
