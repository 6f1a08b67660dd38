package engine

import "strings"

// stopper holds back text that may be the beginning of a stop string.
type stopper struct {
	stops []string
	held  string
}

func newStopper(stops []string) *stopper {
	s := &stopper{}
	for _, stop := range stops {
		if stop != "" { // the empty string is in every text
			s.stops = append(s.stops, stop)
		}
	}
	return s
}

// push adds text. It returns what can be passed on now, and whether a stop string
// is complete: then text ends before it, and nothing may be pushed any more.
func (s *stopper) push(text string) (out string, stopped bool) {
	if len(s.stops) == 0 {
		return text, false
	}
	s.held += text
	first := -1
	for _, stop := range s.stops {
		if i := strings.Index(s.held, stop); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first >= 0 {
		out, s.held = s.held[:first], ""
		return out, true
	}
	keep := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > keep; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				keep = n
				break
			}
		}
	}
	cut := len(s.held) - keep
	out, s.held = s.held[:cut], s.held[cut:]
	return out, false
}

// flush returns the text that is still held back, at the end of the output.
func (s *stopper) flush() string {
	out := s.held
	s.held = ""
	return out
}
