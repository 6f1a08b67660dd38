package chat

import (
	"bytes"
	"slices"
	"strings"
)

const (
	parameterTag   = "<parameter="
	parameterClose = "</parameter>"
	functionClose  = "</function>"
)

// xmlCall is a call in Qwen3-Coder's form while it streams in:
//
//	<function=NAME>
//	<parameter=KEY>
//	VALUE
//	</parameter>
//	</function>
//
// A value is what stands between the two line ends next to its tags, byte for byte.
type xmlCall struct {
	at    int // read up to here
	phase xmlPhase
	name  string
	key   string
	from  int // start of the value
	args  *Map
	json  Value // the arguments, where they are one JSON object (an older form)
}

type xmlPhase uint8

const (
	xmlHead    xmlPhase = iota // at <function=
	xmlBetween                 // in front of a tag
	xmlValue                   // within a value
	xmlJSON                    // within a JSON object in place of parameters
	xmlAfter                   // behind </function>
)

// xml is the mode of such a call.
func (p *Parser) xml(final bool) bool {
	x := p.fn
	if x == nil {
		x = &xmlCall{at: p.scan.pos, args: NewMap()}
		p.fn = x
	}
	for {
		b := p.buf[x.at:]
		switch x.phase {
		case xmlHead:
			i := bytes.IndexAny(b[len(functionTag):], ">\n")
			if i < 0 && !final && len(b) < 256 {
				return false
			}
			if i < 0 || b[len(functionTag)+i] != '>' {
				return p.endXML(x.at+len(functionTag), false)
			}
			x.name = strings.Trim(strings.TrimSpace(string(b[len(functionTag):len(functionTag)+i])), `"'`)
			x.at += len(functionTag) + i + 1
			x.phase = xmlBetween
			if t := p.tools.find(x.name); t != nil && !p.near {
				p.start(0, t.name)
			}
		case xmlBetween:
			n := len(b) - len(bytes.TrimLeft(b, " \t\r\n"))
			x.at += n
			b = b[n:]
			if len(b) == 0 {
				return final && p.endXML(x.at, true)
			}
			if b[0] == '{' && x.args.Len() == 0 {
				x.phase, x.from = xmlJSON, x.at
				continue
			}
			mark, wait := match(b, final, []string{parameterTag, functionClose, functionTag}, closers, openers, p.ends)
			switch {
			case wait:
				return false
			case mark == parameterTag:
				i := bytes.IndexAny(b[len(mark):], ">\n")
				if i < 0 && !final && len(b) < 256 {
					return false
				}
				if i < 0 || b[len(mark)+i] != '>' {
					return p.endXML(x.at+len(mark), false)
				}
				x.key = strings.Trim(strings.TrimSpace(string(b[len(mark):len(mark)+i])), `"'`)
				x.at += len(mark) + i + 1
				x.from = x.at
				x.phase = xmlValue
			case mark == functionClose:
				x.at += len(mark)
				x.phase = xmlAfter
			case slices.Contains(closers, mark), slices.Contains(p.ends, mark):
				return p.endXML(x.at+len(mark), true)
			case mark != "":
				return p.endXML(x.at, true)
			default:
				// Text where a tag should be: without any it was no call at all.
				return p.endXML(x.at, x.args.Len() > 0)
			}
		case xmlValue:
			if done, wait := p.xmlValueEnd(x, final); wait {
				return false
			} else if !done {
				return p.endXML(len(p.buf), false)
			}
		case xmlJSON:
			i := bytes.Index(b, []byte(functionClose))
			if i < 0 {
				if !final {
					x.at = max(x.from, len(p.buf)-len(functionClose))
					return false
				}
				i = len(b)
			}
			vs, end := looseAll(string(p.buf[x.from:x.at+i]), i < len(b))
			if end > looseClosed || len(vs) != 1 {
				return p.endXML(min(len(p.buf), x.at+i+len(functionClose)), false)
			}
			x.json = vs[0]
			x.at = min(len(p.buf), x.at+i+len(functionClose))
			x.phase = xmlAfter
		case xmlAfter:
			n := len(b) - len(bytes.TrimLeft(b, " \t\r\n"))
			mark, wait := match(b[n:], final, closers)
			if wait || n == len(b) && !final {
				return false
			}
			if mark != "" {
				return p.endXML(x.at+n+len(mark), true)
			}
			return p.endXML(x.at, true)
		}
	}
}

// xmlValueEnd looks for the end of a value. The first end tag counts that another
// tag or the end follows: one within the value is content.
func (p *Parser) xmlValueEnd(x *xmlCall, final bool) (done, wait bool) {
	for {
		b := p.buf[x.at:]
		i := bytes.IndexByte(b, '<')
		if i < 0 {
			x.at = len(p.buf)
			return false, !final
		}
		x.at += i
		b = b[i:]
		mark, wait := match(b, final, []string{parameterClose, parameterTag, functionClose})
		if wait {
			return false, true
		}
		to, at := x.at, x.at
		lineStart := to > x.from && p.buf[to-1] == '\n'
		ends := false
		switch mark {
		case parameterClose:
			at += len(mark)
			rest := p.buf[at:]
			rest = rest[len(rest)-len(bytes.TrimLeft(rest, " \t\r\n")):]
			next, wait := match(rest, final, []string{parameterTag, functionClose}, closers)
			if wait || len(rest) == 0 && !final {
				return false, true
			}
			ends = next != "" || len(rest) == 0
		case parameterTag:
			// The closing tag is missing, if this is a parameter of the tool.
			j := bytes.IndexAny(b, ">\n")
			if j < 0 && !final && len(b) < 256 {
				return false, true
			}
			if t := p.tools.find(x.name); lineStart && j > 0 && b[j] == '>' && t != nil {
				ends = hasKey(t.props, strings.TrimSpace(string(b[len(mark):j])))
			}
		case functionClose:
			rest := b[len(mark):]
			rest = bytes.TrimLeft(rest, " \t\r\n")
			next, wait := match(rest, final, closers[:1], []string{functionTag})
			if wait || len(rest) == 0 && !final {
				return false, true
			}
			ends = lineStart && (next != "" || len(rest) == 0)
		}
		if !ends {
			x.at++
			continue
		}
		v := string(p.buf[x.from:to])
		if rest, ok := strings.CutPrefix(v, "\n"); ok {
			v = strings.TrimSuffix(rest, "\n")
		}
		x.args.Set(x.key, outside(v))
		x.at = at
		x.phase = xmlBetween
		return true, false
	}
}

// endXML ends the block at offset next. whole says that the call can be read.
func (p *Parser) endXML(next int, whole bool) bool {
	x := p.fn
	p.fn = nil
	raw := string(p.buf[:next])
	if !whole && (p.near && p.tools.find(x.name) == nil) {
		p.release(1)
		return true
	}
	var e Event
	if whole && x.name != "" {
		c := callObject{name: x.name, tool: p.tools.find(x.name), args: x.args, explicit: true}
		if x.json != nil {
			c.args = x.json
		}
		if c.tool != nil {
			c.name = c.tool.name
		}
		e = p.tools.finish(c, raw)
	} else {
		e = Event{Kind: EventToolError, Name: x.name, Raw: raw, Reason: Malformed, Message: "the call is not complete, it was not run"}
	}
	p.drop(next)
	p.report([]Event{e})
	p.mode = (*Parser).text
	return true
}
