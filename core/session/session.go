// Package session keeps conversations on disk: one append-only log of events each, and its projection in memory.
//
// An event is written to the journal first and published second; Emit returns after it is synced. Streamed text is gathered and
// written at most every 2,048 bytes or 50 milliseconds. A session is open in one process at a time. Opening repairs what a crash
// left: see State.
package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"atoll/core/event"
	"atoll/core/message"
	"atoll/core/store"
)

// Streamed text is written when this much is gathered, or this long after the last write.
const (
	flushBytes    = 2048
	flushInterval = 50 * time.Millisecond
)

// Session is an open session. Its methods are safe for concurrent use; events are ordered by who calls first.
type Session struct {
	id    string
	dir   string // holds store/, meta.json, pid
	spill string // folder for tool output that is too long for the model
	db    *store.DB
	clock Clock
	bus   event.Bus

	// emit orders journal and publication. It is held while the journal is synced and while subscribers that must get every
	// event take it, so that nothing can overtake; State and the like do not need it.
	emit    sync.Mutex
	pending event.Body // TextDelta or ReasoningDelta that is gathered, or nil
	flushed time.Time  // of the last write of streamed text
	stop    func()     // of the timer that writes pending, or nil
	failed  error      // first error of the journal

	mu    sync.Mutex // guards state and msgs; nothing else happens under it
	state State
	msgs  int // messages numbered so far
	ncall int
	nask  int
}

// load reads the journal into the state.
func (s *Session) load() error {
	if err := s.Events(1, s.state.Apply); err != nil {
		if errors.Is(err, store.ErrDiskFull) {
			return err
		}
		return fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	s.msgs, s.ncall, s.nask = len(s.state.Messages), len(s.state.calls), s.state.asked
	return nil
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// State returns a copy of the projection.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Clone()
}

// ForModel returns the conversation as a model may see it.
func (s *Session) ForModel() []message.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.ForModel()
}

// NextMessageID returns a new message id: "m1", "m2", ...
func (s *Session) NextMessageID() string { return s.number("m", &s.msgs) }

// NextCallID returns a new call id: "c1", "c2", ...
func (s *Session) NextCallID() string { return s.number("c", &s.ncall) }

// NextAskID returns a new id of a permission request: "p1", "p2", ...
func (s *Session) NextAskID() string { return s.number("p", &s.nask) }

func (s *Session) number(prefix string, n *int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
	return prefix + strconv.Itoa(*n)
}

// Subscribe returns a stream of all events from now on. See event.Bus.
func (s *Session) Subscribe(buffer int) *event.Subscription { return s.bus.Subscribe(buffer) }

// Emit journals the bodies as one batch, then publishes them. Streamed text that is still gathered goes first. After an error
// nothing was published.
func (s *Session) Emit(bodies ...event.Body) error {
	s.emit.Lock()
	defer s.emit.Unlock()
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.write(bodies...); err != nil {
		return err
	}
	for _, b := range bodies {
		if m, ok := b.(event.MessageStarted); ok && m.Message.Role == message.User {
			_ = s.SaveMeta() // a list shows the turn although it may never end
		}
	}
	return nil
}

// Live publishes bodies that are not journaled.
func (s *Session) Live(b event.Body) {
	s.emit.Lock()
	defer s.emit.Unlock()
	if !event.Live(b) {
		panic(fmt.Sprintf("BUG: %T is not a live event", b))
	}
	_ = s.flush() // text that came before is shown before; an error is kept for the next call
	s.bus.Publish(event.Event{Time: s.clock.Now(), Body: b})
}

// Unjournaled publishes a body that belongs into the journal when the journal failed: the end of a turn must be seen.
func (s *Session) Unjournaled(b event.Body) {
	s.emit.Lock()
	defer s.emit.Unlock()
	s.bus.Publish(event.Event{Time: s.clock.Now(), Body: b})
}

// Stream gathers text of a TextDelta or ReasoningDelta.
func (s *Session) Stream(b event.Body) error {
	s.emit.Lock()
	defer s.emit.Unlock()
	if s.failed != nil {
		return s.failed
	}
	joined, ok := join(s.pending, b)
	if !ok {
		if err := s.flush(); err != nil {
			return err
		}
		joined = b
	}
	s.pending = joined
	wait := flushInterval - s.clock.Now().Sub(s.flushed)
	if textLen(joined) >= flushBytes || wait <= 0 {
		return s.flush()
	}
	if s.stop == nil {
		s.stop = s.clock.AfterFunc(min(wait, flushInterval), func() {
			s.emit.Lock()
			defer s.emit.Unlock()
			_ = s.flush() // kept in failed; the next call returns it
		})
	}
	return nil
}

// join adds b to the gathered delta a of the same kind and message.
func join(a, b event.Body) (event.Body, bool) {
	switch a := a.(type) {
	case nil:
		return b, true
	case event.TextDelta:
		if b, ok := b.(event.TextDelta); ok && a.Message == b.Message {
			return event.TextDelta{Message: a.Message, Text: a.Text + b.Text}, true
		}
	case event.ReasoningDelta:
		if b, ok := b.(event.ReasoningDelta); ok && a.Message == b.Message {
			return event.ReasoningDelta{Message: a.Message, Text: a.Text + b.Text}, true
		}
	}
	return nil, false
}

func textLen(b event.Body) int {
	switch b := b.(type) {
	case event.TextDelta:
		return len(b.Text)
	case event.ReasoningDelta:
		return len(b.Text)
	default:
		panic(fmt.Sprintf("BUG: %T is not streamed text", b))
	}
}

// flush writes the gathered text. The caller holds emit.
func (s *Session) flush() error {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
	if s.failed != nil {
		return s.failed
	}
	if s.pending == nil {
		return nil
	}
	b := s.pending
	s.pending = nil
	s.flushed = s.clock.Now()
	return s.write(b)
}

// write journals and publishes. The caller holds emit.
func (s *Session) write(bodies ...event.Body) error {
	if s.failed != nil {
		return s.failed
	}
	now := s.clock.Now()
	seq := s.db.Next()
	events := make([]event.Event, len(bodies))
	records := make([][]byte, len(bodies))
	for i, b := range bodies {
		events[i] = event.Event{Seq: seq + uint64(i), Time: now, Body: b}
		rec, err := event.Encode(events[i])
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		records[i] = rec
	}
	if _, err := s.db.Append(records...); err != nil {
		s.failed = fmt.Errorf("journal: %w", err)
		return s.failed
	}
	s.mu.Lock()
	for _, e := range events {
		if err := s.state.Apply(e); err != nil {
			s.mu.Unlock()
			panic("BUG: " + err.Error())
		}
	}
	s.mu.Unlock()
	for _, e := range events {
		s.bus.Publish(e)
	}
	return nil
}

// Events calls fn for each journaled event from number from on.
func (s *Session) Events(from uint64, fn func(event.Event) error) error {
	return s.db.Records(from, func(n uint64, rec []byte) error {
		e, err := event.Decode(rec)
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if e.Seq != n {
			return fmt.Errorf("record %d holds event %d", n, e.Seq)
		}
		return fn(e)
	})
}

// SpillDir is the folder for tool output that is too long for the model. It exists after the first Spill. It lies outside of the
// session's own folder, because a tool may be given it to read.
func (s *Session) SpillDir() string { return s.spill }

// Spill keeps the whole output of a call and returns the file's path.
func (s *Session) Spill(callID string, text string) (string, error) {
	if err := CheckID(callID); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	if err := os.MkdirAll(s.spill, 0o700); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	path := filepath.Join(s.spill, callID+".txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("spill: %w", err)
	}
	return path, nil
}

// SaveMeta writes meta.json. It only makes lists fast and can be made again from the journal at any time.
func (s *Session) SaveMeta() error {
	s.mu.Lock()
	m := metaOf(&s.state)
	s.mu.Unlock()
	return writeMeta(s.dir, m)
}

// Close writes what is gathered, ends all subscriptions and gives the session free for other processes.
func (s *Session) Close() error {
	s.emit.Lock()
	err := s.flush()
	s.emit.Unlock()
	s.bus.Close()
	_ = os.Remove(filepath.Join(s.dir, pidFile))
	if cerr := s.db.Close(); err == nil {
		err = cerr
	}
	return err
}
