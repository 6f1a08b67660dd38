package grep

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"

	"atoll/tools-wasm/internal/text"
)

const (
	// chunk is how much of a file is read at once, and the longest line that is judged whole.
	chunk = 1 << 18
	// overlap is how much of a longer line is looked at again with its next part, so that a match across
	// the cut is found.
	overlap = 4 << 10
)

// file searches one regular file.
func (s *search) file(abs string) error {
	f, err := os.Open(abs)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.buf == nil {
		s.buf = make([]byte, chunk)
	}
	sc := &scanner{s: s, name: s.env.Display(abs), line: 1}
	if err := sc.run(f); err != nil {
		return err
	}
	if s.context > 0 && len(sc.hits) > 0 {
		return s.printContext(f, sc)
	}
	return nil
}

// A scanner is the search of one file.
type scanner struct {
	s    *search
	name string
	enc  text.Encoding
	mark int // bytes of the byte order mark
	line int // number of the line at the start of the region that is searched
	hits []int
}

// run reads the file chunk by chunk; a chunk ends with a line, unless a line is longer than the buffer.
func (sc *scanner) run(f *os.File) error {
	buf := sc.s.buf
	n, err := io.ReadFull(f, buf[:text.SniffLen])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	if text.IsBinary(buf[:n]) {
		sc.s.binary++
		return nil
	}
	sc.enc, sc.mark = text.Detect(buf[:n])
	var r io.Reader = f
	if sc.enc == text.UTF16LE || sc.enc == text.UTF16BE {
		if _, err := f.Seek(int64(sc.mark), io.SeekStart); err != nil {
			return err
		}
		r, n = text.NewReader(f, sc.enc), 0
	} else {
		n = copy(buf, buf[sc.mark:n])
	}
	long, hit := false, false // within a line longer than the buffer; it matched already
	for eof := false; !eof; {
		for n < len(buf) && !eof {
			k, err := r.Read(buf[n:])
			n += k
			if errors.Is(err, io.EOF) {
				eof = true
			} else if err != nil {
				return err
			}
		}
		region := buf[:n]
		if long {
			// The rest of the long line, up to its end.
			end := bytes.IndexByte(region, '\n')
			whole := end >= 0 || eof
			if end < 0 {
				end = len(region)
			}
			if !hit {
				hit = sc.long(region[:end])
			}
			if whole {
				long, region = false, region[min(end+1, len(region)):]
				sc.line++
			} else {
				n = copy(buf, region[len(region)-overlap:])
				continue
			}
		}
		rest := 0
		if !eof {
			end := bytes.LastIndexByte(region, '\n') + 1
			if end == 0 && len(region) == len(buf) {
				long, hit = true, sc.long(region)
				n = copy(buf, region[len(region)-overlap:])
				continue
			}
			rest = len(region) - end
			region = region[:end]
		}
		if sc.lines(region); sc.s.full {
			return nil
		}
		if !eof {
			sc.line += text.CountLines(region)
			n = copy(buf, region[len(region):len(region)+rest])
		}
	}
	return nil
}

// long judges a part of a line that does not fit the buffer. Where it was cut counts as its end: the
// price of bounded memory.
func (sc *scanner) long(part []byte) bool {
	if sc.s.full {
		return true
	}
	m := sc.s.matcher
	if m.need != nil {
		if at, _ := m.need.index(part); at < 0 {
			return false
		}
	}
	if !m.match(part) {
		return false
	}
	sc.hit(sc.line, part)
	return true
}

// lines searches a region of whole lines.
func (sc *scanner) lines(region []byte) {
	m := sc.s.matcher
	counted, line := 0, sc.line
	for pos := 0; pos < len(region) && !sc.s.full; {
		start := pos
		if m.need != nil {
			at, _ := m.need.index(region[pos:])
			if at < 0 {
				return
			}
			start = pos + at
			start = pos + bytes.LastIndexByte(region[pos:start], '\n') + 1
			pos += at
		}
		end := len(region)
		if i := indexByte(region[pos:], '\n'); i >= 0 {
			end = pos + i
		}
		if l := bytes.TrimSuffix(region[start:end], []byte{'\r'}); m.match(l) {
			line += text.CountLines(region[counted:start])
			counted = start
			sc.hit(line, l)
		}
		pos = end + 1
	}
}

// hit records a matching line.
func (sc *scanner) hit(number int, line []byte) {
	s := sc.s
	if s.matches == maxMatches || len(s.out) >= maxBytes {
		s.full = true
		return
	}
	s.matches++
	if s.context > 0 {
		sc.hits = append(sc.hits, number)
		return
	}
	at := 0
	if len(line) > maxLine {
		if loc := s.matcher.find(line); loc != nil {
			at = loc[0]
		}
	}
	s.print(sc.name, ':', number, line, at)
}

// print appends a line; of a long one the part around the byte at.
func (s *search) print(name string, sep byte, number int, line []byte, at int) {
	s.out = append(append(s.out, name...), sep)
	s.out = append(strconv.AppendInt(s.out, int64(number), 10), sep)
	clipped := len(line) > maxLine
	if clipped {
		from := 0
		if at > maxLine*2/3 {
			from = at - maxLine/3
			for from < at && line[from]&0xc0 == 0x80 {
				from++
			}
			s.out = append(s.out, "..."...)
		}
		line = line[from:]
		clipped = len(line) > maxLine
		line = text.Clip(line, maxLine)
	}
	s.out, _ = text.AppendVisible(s.out, line)
	if clipped {
		s.out = append(s.out, "..."...)
	}
	s.out = append(s.out, '\n')
}

// printContext reads the file again, up to the last line that is shown, and prints the matching lines
// with their surroundings; a line "--" stands between parts that do not touch.
func (s *search) printContext(f *os.File, sc *scanner) error {
	if _, err := f.Seek(int64(sc.mark), io.SeekStart); err != nil {
		return err
	}
	r := &lineReader{r: text.NewReader(f, sc.enc), buf: s.buf}
	next, shown := 0, -1 // index of the next hit; last line printed
	for number := 1; ; number++ {
		for next < len(sc.hits) && number > sc.hits[next]+s.context {
			next++
		}
		if next == len(sc.hits) {
			return nil
		}
		line, err := r.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if number < sc.hits[next]-s.context {
			continue
		}
		if len(s.out) > 0 && number != shown+1 {
			s.out = append(s.out, "--\n"...)
		}
		shown = number
		// Of the hits that this line is near to, one may be the line itself.
		sep := byte('-')
		for k := next; k < len(sc.hits) && sc.hits[k] <= number; k++ {
			if sc.hits[k] == number {
				sep = ':'
			}
		}
		at := 0
		if len(line) > maxLine && sep == ':' {
			if loc := s.matcher.find(line); loc != nil {
				at = loc[0]
			}
		}
		s.print(sc.name, sep, number, line, at)
		if len(s.out) > 2*maxBytes {
			s.full = true
			return nil
		}
	}
}

// A lineReader returns lines without ends; of a line longer than its buffer only the start.
type lineReader struct {
	r          io.Reader
	buf        []byte
	start, end int
	err        error
}

func (l *lineReader) next() ([]byte, error) {
	var cut []byte // start of a long line
	for {
		if i := bytes.IndexByte(l.buf[l.start:l.end], '\n'); i >= 0 {
			line := l.buf[l.start : l.start+i]
			l.start += i + 1
			if cut != nil {
				line = cut
			}
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		if l.err != nil {
			if l.start == l.end && cut == nil {
				return nil, l.err
			}
			line := l.buf[l.start:l.end]
			l.start = l.end
			if cut != nil {
				line = cut
			}
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		if l.start > 0 {
			l.end = copy(l.buf, l.buf[l.start:l.end])
			l.start = 0
		} else if l.end == len(l.buf) {
			if cut == nil {
				cut = bytes.Clone(l.buf[:min(len(l.buf), 64<<10)])
			}
			l.end = 0
		}
		n, err := l.r.Read(l.buf[l.end:])
		l.end, l.err = l.end+n, err
	}
}
