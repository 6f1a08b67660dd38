package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"atoll/core/tool"
)

// A turn that makes the same calls and gets the same results goes nowhere. The guard looks for blocks of one, two or three calls
// that follow each other: after the second equal block the model is told, after the third the turn ends.
const (
	loopPeriods = 3
	loopWarn    = 2
	loopStop    = 3
)

const loopText = "\n[This call gave the same result before. Do not repeat it: try something else, or give your answer.]"

type guard struct {
	seen [][32]byte // hash of call and result, the last loopPeriods*loopStop
}

// add takes a call and its result and returns how many equal blocks there are at the end, the most over all periods.
func (g *guard) add(c call, r tool.Result) int {
	h := sha256.New()
	for _, s := range []string{c.key(), r.Output} {
		h.Write([]byte(s))
		h.Write([]byte{0xff}) // no part of UTF-8: the parts cannot run into each other
	}
	g.seen = append(g.seen, [32]byte(h.Sum(nil)))
	if over := len(g.seen) - loopPeriods*loopStop; over > 0 {
		g.seen = g.seen[over:]
	}
	most := 1
	for period := 1; period <= loopPeriods; period++ {
		most = max(most, g.blocks(period))
	}
	return most
}

// key tells calls apart by tool and arguments.
func (c call) key() string { return c.name + "\x00" + canonical(c.input) + "\x00" + c.raw }

// blocks counts the equal blocks of period entries at the end, up to loopStop.
func (g *guard) blocks(period int) int {
	n := 1
	for ; n < loopStop; n++ {
		end := len(g.seen) - n*period
		if end < period {
			return n
		}
		for i := 1; i <= period; i++ {
			if g.seen[end-i] != g.seen[len(g.seen)-i] {
				return n
			}
		}
	}
	return n
}

// canonical returns JSON without the differences that mean nothing: spaces and the order of keys.
func canonical(b json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(b)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(b)
	}
	return string(out)
}
