package chat

import (
	"bytes"
)

// leadAfterThink skips the blanks between reasoning and answer.
func (p *Parser) leadAfterThink() {
	p.mode = func(p *Parser, final bool) bool {
		n := len(p.buf) - len(bytes.TrimLeft(p.buf, " \t\r\n"))
		p.drop(n)
		if len(p.buf) == 0 {
			return false
		}
		p.mode, p.lineStart, p.ticks = (*Parser).text, true, 0
		return true
	}
}

// reasoning is the mode between <think> and </think>. A call in there is a thought,
// unless the reasoning never ends.
func (p *Parser) reasoning(final bool) bool {
	for len(p.buf) > 0 {
		c := p.buf[0]
		if isBlank(c) {
			p.hold = append(p.hold, c)
			p.drop(1)
			continue
		}
		if c == '<' {
			mark, wait := match(p.buf, final, []string{thinkClose, openers[0]})
			switch {
			case wait:
				return false
			case mark == thinkClose:
				p.dropLayout()
				p.drop(len(mark))
				p.think = false
				p.leadAfterThink()
				return true
			case mark != "":
				p.mode, p.region = (*Parser).thoughtCall, 0
				return true
			}
		}
		n := 1
		for n < len(p.buf) && !isBlank(p.buf[n]) && p.buf[n] != '<' {
			n++
		}
		p.thought(p.buf[:n])
		p.drop(n)
	}
	if final {
		p.dropLayout()
	}
	return false
}

func (p *Parser) thought(s []byte) {
	if p.musing {
		p.emit(Event{Kind: EventReasoning, Text: string(p.hold)})
	}
	p.hold = p.hold[:0]
	p.musing = true
	p.emit(Event{Kind: EventReasoning, Text: string(s)})
}

// thoughtCall holds back what follows <tool_call> within reasoning.
func (p *Parser) thoughtCall(final bool) bool {
	from := max(0, p.region-len(thinkClose))
	if i := bytes.Index(p.buf[from:], []byte(thinkClose)); i >= 0 {
		p.thought(p.buf[:from+i])
		p.drop(from + i)
		p.mode = (*Parser).reasoning
		return true
	}
	p.region = len(p.buf)
	if !final {
		return false
	}
	p.dropLayout()
	p.mode, p.lineStart, p.ticks = (*Parser).text, true, 0
	return true
}
