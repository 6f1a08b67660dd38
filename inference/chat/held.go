package chat

import (
	"bytes"
	"slices"
	"strings"
)

// bare is the mode of an answer that begins with a bracket: it is a call if
// nothing but calls is in it.
func (p *Parser) bare(final bool) bool {
	for {
		stop := p.scan.step(p.buf, final)
		if !p.likely(p.buf, final) {
			p.passJSON("")
			return true
		}
		switch stop {
		case scanMore:
			if !final {
				return false
			}
			return p.endBare(len(p.buf))
		case scanText:
			p.passJSON("")
			return true
		case scanMark:
			mark, wait := match(p.buf[p.scan.pos:], final, closers, p.ends)
			if wait {
				return false
			}
			if mark == "" {
				if !p.scan.whole() && p.buf[p.scan.pos] == '<' {
					p.scan.pos++
					continue
				}
				p.passJSON("")
				return true
			}
			// Stray end tags and end tokens are no text.
			p.buf = append(p.buf[:p.scan.pos:p.scan.pos], p.buf[p.scan.pos+len(mark):]...)
		}
	}
}

// likely says whether what is held so far can still be a call: its first key tells.
func (p *Parser) likely(b []byte, final bool) bool {
	rest := bytes.TrimLeft(b[p.body:], " \t\r\n[{")
	if len(rest) == 0 || rest[0] == '<' || rest[0] == '`' {
		return true
	}
	if head := b[p.body : len(b)-len(rest)]; bytes.IndexByte(head, '{') < 0 {
		return false // a list of something else
	}
	if rest[0] == '/' || rest[0] == '#' {
		return true
	}
	if rest[0] != '"' && rest[0] != '\'' {
		n := bytes.IndexFunc(rest, func(c rune) bool { return !isNameRune(c) })
		if n < 0 {
			return len(rest) < 32
		}
		return callKey(string(rest[:n]))
	}
	n := bytes.IndexByte(rest[1:], rest[0])
	if n < 0 {
		return len(rest) < 32
	}
	return callKey(string(rest[1 : 1+n]))
}

func (p *Parser) endBare(to int) bool {
	content := string(p.buf[:to])
	if events, ok := p.readUntagged(content); ok {
		p.drop(to)
		p.report(events)
		p.mode = (*Parser).text
		return true
	}
	p.passJSON("")
	return true
}

// passJSON lets go of a held region that is no call: it goes out as text, still read
// as JSON, so that a tag within a string stays text. fence is what closes the
// block it is in, if any.
func (p *Parser) passJSON(fence string) {
	n := p.body
	if n > 0 {
		p.plain(p.buf[:n])
		p.drop(n)
	}
	s := newCallScan()
	s.mute = true
	p.mode = func(p *Parser, final bool) bool { return p.jsonText(s, fence, final) }
}

func (p *Parser) jsonText(s *callScan, fence string, final bool) bool {
	for {
		stop := s.step(p.buf, final)
		n := s.pos
		if n > 0 {
			p.plain(p.buf[:n])
			p.drop(n)
			s.pos = 0
		}
		switch stop {
		case scanMore:
			if final && len(p.buf) > 0 { // half a comment mark
				p.plain(p.buf)
				p.drop(len(p.buf))
			}
			return false
		case scanText:
			if fence != "" {
				p.mode = func(p *Parser, final bool) bool { return p.inCode(fence, final) }
			} else {
				p.mode, p.ticks = (*Parser).text, 0
			}
			return true
		case scanMark:
			if fence != "" && p.buf[0] == '`' {
				p.mode = func(p *Parser, final bool) bool { return p.inCode(fence, final) }
				return true
			}
			if s.whole() && fence == "" {
				p.mode, p.ticks = (*Parser).text, 0
				return true
			}
			s.sig = p.buf[0]
			s.pos = 1
		}
	}
}

// readUntagged reads what stands without tags: only objects that call offered
// tools count.
func (p *Parser) readUntagged(content string) ([]Event, bool) {
	body := stripFence(content)
	values, end := looseAll(body, false)
	if end == looseBad && len(values) > 0 {
		return nil, false // something else beside the call
	}
	for _, v := range values {
		calls, ok := p.tools.callsIn(v)
		if !ok || len(calls) == 0 {
			return nil, false
		}
		for _, c := range calls {
			if c.tool == nil || !c.explicit {
				return nil, false
			}
		}
	}
	events, isCall := p.readJSON(body, content, false)
	return events, isCall
}

// callInfos are the words behind a fence under which models write calls.
var callInfos = []string{"", "json", "jsonc", "json5", "tool_call", "tool_calls", "tool", "tool_code", "xml"}

// fence is the mode of a fenced block that may be a call, together with the blocks
// before it that are nothing but calls.
func (p *Parser) fence(final bool) bool {
	const longest = 64 // a line that is longer is no fence's
	line := bytes.IndexByte(p.buf[p.body:], '\n')
	if line < 0 && !final && len(p.buf)-p.body <= longest {
		return false
	}
	if line < 0 || line > longest {
		if p.region == 0 {
			p.region = p.body
		}
		p.releaseFences()
		return true
	}
	p.info = strings.ToLower(strings.TrimSpace(string(p.buf[p.body : p.body+line])))
	first := bytes.TrimLeft(p.buf[p.body+line+1:], " \t\r\n")
	if len(first) == 0 && !final {
		return false
	}
	if !slices.Contains(callInfos, p.info) || len(first) == 0 || first[0] != '{' && first[0] != '[' && first[0] != '<' {
		if p.region > 0 {
			p.releaseFences() // the block is read again
		} else {
			p.code(p.body + line + 1)
		}
		return true
	}
	p.body += line + 1
	p.scan.pos = p.body
	p.mode = (*Parser).fenced
	return true
}

// fenced is the mode inside such a block.
func (p *Parser) fenced(final bool) bool {
	for {
		stop := p.scan.step(p.buf, final)
		if !p.likely(p.buf, final) {
			if p.region > 0 {
				p.releaseFences() // the block is read again
			} else {
				p.passJSON(p.open)
			}
			return true
		}
		switch stop {
		case scanMore:
			if !final {
				return false
			}
			p.blocks = append(p.blocks, fenceBlock{span{p.body, len(p.buf)}, len(p.buf)})
			p.region = len(p.buf)
			p.mode = (*Parser).afterFence
			return true
		case scanText:
			p.scan.sig = p.buf[p.scan.pos]
			p.scan.pos++
		case scanMark:
			if p.buf[p.scan.pos] == '<' {
				p.scan.pos++
				continue
			}
			b := p.buf[p.scan.pos:]
			n := len(b) - len(bytes.TrimLeft(b, "`"))
			if n == len(b) && !final {
				return false
			}
			if n < len(p.open) || !lineBegins(p.buf[:p.scan.pos]) {
				p.scan.pos += n
				continue
			}
			p.blocks = append(p.blocks, fenceBlock{span{p.body, p.scan.pos}, p.scan.pos + n})
			p.region = p.scan.pos + n
			p.mode = (*Parser).afterFence
			return true
		}
	}
}

// lineBegins says whether only blanks stand between the last line end and the end of b.
func lineBegins(b []byte) bool {
	return len(bytes.TrimSpace(b[bytes.LastIndexByte(b, '\n')+1:])) == 0
}

// afterFence is the mode behind such a block: text there makes it an example.
func (p *Parser) afterFence(final bool) bool {
	at := p.region
	for at < len(p.buf) {
		c := p.buf[at]
		if isBlank(c) {
			at++
			continue
		}
		if c == '`' && lineBegins(p.buf[:at]) {
			b := p.buf[at:]
			n := len(b) - len(bytes.TrimLeft(b, "`"))
			if n == len(b) && !final {
				return false
			}
			if n >= 3 {
				// Another block: it is read with the ones before it.
				p.open = strings.Repeat("`", n)
				p.body = at + n
				p.scan = newCallScan()
				p.mode = (*Parser).fence
				return true
			}
		}
		mark, wait := match(p.buf[at:], final, p.ends, closers)
		if wait {
			return false
		}
		if mark != "" {
			at += len(mark)
			continue
		}
		p.releaseFences()
		return true
	}
	if !final {
		return false
	}
	return p.endFences()
}

// releaseFences lets go of complete blocks as text; what follows is text mode's.
func (p *Parser) releaseFences() {
	p.ticks = 0
	p.release(p.region)
}

// endFences decides about blocks that end the answer: the calls are those at the
// very end.
func (p *Parser) endFences() bool {
	first := len(p.blocks)
	var all []Event
	for first > 0 {
		events, ok := p.readFence(strings.TrimSpace(string(p.buf[p.blocks[first-1].from:p.blocks[first-1].to])))
		if !ok {
			break
		}
		all = append(events, all...)
		first--
	}
	if len(all) == 0 {
		p.releaseFences()
		return true
	}
	if first > 0 {
		n := p.blocks[first-1].end
		p.plain(p.buf[:n])
		p.drop(n)
	}
	p.drop(len(p.buf))
	p.report(all)
	p.mode = (*Parser).text
	return true
}

// readFence reads the calls in a block, false if it is anything else.
func (p *Parser) readFence(content string) ([]Event, bool) {
	if !strings.HasPrefix(content, "<") {
		return p.readUntagged(content)
	}
	// Tags within the fence: an answer of its own.
	in := &Parser{tools: p.tools, ends: p.ends, mode: (*Parser).text, lineStart: true, nestFence: true, cut: p.cut}
	a := Collect(append(in.Push(content), in.Close()...))
	return a.Calls, strings.TrimSpace(a.Content) == "" && len(a.Calls) > 0
}

// code releases n bytes of a fenced block that is no call and passes the rest on
// up to the closing fence.
func (p *Parser) code(n int) {
	fence := p.open
	p.plain(p.buf[:n])
	p.drop(n)
	p.ticks = 0
	p.mode = func(p *Parser, final bool) bool { return p.inCode(fence, final) }
}

// inCode passes code on. A tag at the start of a line is held until the block
// ends: if it never does, the tag was meant.
func (p *Parser) inCode(fence string, final bool) bool {
	for len(p.buf) > 0 {
		c := p.buf[0]
		switch {
		case isBlank(c):
			p.hold = append(p.hold, c)
			if c == '\n' {
				p.lineStart = true
			}
			p.drop(1)
			continue
		case c == '`' && p.lineStart:
			n := len(p.buf) - len(bytes.TrimLeft(p.buf, "`"))
			if n == len(p.buf) && !final {
				return false
			}
			p.plain(p.buf[:n])
			p.drop(n)
			if n >= len(fence) {
				p.mode = (*Parser).text
				return true
			}
			continue
		case c == '<' && p.lineStart:
			mark, wait := match(p.buf, final, openers[:1])
			if wait {
				return false
			}
			if mark != "" {
				p.region = 0
				p.mode = func(p *Parser, final bool) bool { return p.codeTag(fence, final) }
				return true
			}
		}
		n := 1
		for n < len(p.buf) && !isBlank(p.buf[n]) && p.buf[n] != '`' && p.buf[n] != '<' {
			n++
		}
		p.plain(p.buf[:n])
		p.drop(n)
	}
	return false
}

// codeTag holds back a tag within code.
func (p *Parser) codeTag(fence string, final bool) bool {
	from := max(0, p.region-len(fence)-1)
	if i := bytes.Index(p.buf[from:], []byte("\n"+fence)); i >= 0 {
		p.plain(p.buf[:from+i])
		p.drop(from + i)
		p.mode = func(p *Parser, final bool) bool { return p.inCode(fence, final) }
		return true
	}
	p.region = len(p.buf)
	if !final {
		return false
	}
	p.mode, p.lineStart, p.ticks = (*Parser).text, true, 0
	return true
}
