package engine

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestStopper: however a text is cut into pieces, what comes out is the text before the
// first stop string, and nothing is held that cannot become one.
func TestStopper(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		text := make([]byte, 30)
		for i := range text {
			text[i] = "ab</"[rng.IntN(4)]
		}
		stops := []string{"</a", "bb<", "", "/a/b"}[rng.IntN(3):]
		want, found := string(text), false
		first := len(text)
		for _, stop := range stops {
			if i := strings.Index(string(text), stop); stop != "" && i >= 0 && i < first {
				first, found = i, true
			}
		}
		want = want[:first]
		s := newStopper(stops)
		var got string
		stopped := false
		for rest := string(text); rest != "" && !stopped; {
			n := 1 + rng.IntN(len(rest))
			var out string
			out, stopped = s.push(rest[:n])
			got += out
			rest = rest[n:]
		}
		if !stopped {
			got += s.flush()
		}
		if stopped != found || !found && got != want || found && got != want {
			t.Fatalf("text %q, stops %q: got %q (%v), want %q (%v)", text, stops, got, stopped, want, found)
		}
	}
}

func TestStopperHoldsOnlyWhatMayStop(t *testing.T) {
	s := newStopper([]string{"</end>"})
	for _, step := range []struct{ in, out string }{{"abc", "abc"}, {"<", ""}, {"b>", "<b>"}, {"</en", ""}, {"</e", "</en"}, {"x", "</ex"}} {
		if out, stopped := s.push(step.in); out != step.out || stopped {
			t.Errorf("push %q: %q (%v), want %q", step.in, out, stopped, step.out)
		}
	}
}
