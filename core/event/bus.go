package event

import "sync"

// Bus hands events to subscribers in order. There are two classes of subscriber: one that must get every event makes Publish
// wait while its buffer is full; a lossy one misses events instead and counts them. The zero Bus is ready. It is safe for
// concurrent use; whoever publishes from several goroutines orders the events itself.
type Bus struct {
	mu   sync.Mutex // guards subs; never held while an event is handed over
	subs []*Subscription
}

// Subscription is one subscriber's stream.
type Subscription struct {
	// C delivers the events. It is closed by Close of the subscription or the bus, after the events before it.
	C <-chan Event

	c     chan Event
	bus   *Bus
	lossy bool

	mu      sync.Mutex // guards the fields below; held while an event is put into c without waiting
	closed  bool
	dropped uint64
	gone    chan struct{} // closed with the subscription: wakes a Publish that waits
	sending sync.WaitGroup
}

// Subscribe adds a subscriber that must get every event from now on. It has to read C, or Close, or publishing stands still.
func (b *Bus) Subscribe(buffer int) *Subscription { return b.add(buffer, false) }

// SubscribeLossy adds a subscriber that may miss events when it does not keep up.
func (b *Bus) SubscribeLossy(buffer int) *Subscription { return b.add(max(buffer, 1), true) }

func (b *Bus) add(buffer int, lossy bool) *Subscription {
	c := make(chan Event, buffer)
	s := &Subscription{C: c, c: c, bus: b, lossy: lossy, gone: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = append(b.subs, s)
	return s
}

// Publish hands e to every subscriber.
func (b *Bus) Publish(e Event) {
	b.mu.Lock()
	subs := b.subs[:len(b.subs):len(b.subs)]
	b.mu.Unlock()
	for _, s := range subs {
		s.put(e)
	}
}

func (s *Subscription) put(e Event) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.sending.Add(1)
	defer s.sending.Done()
	if s.lossy {
		select {
		case s.c <- e:
		default:
			s.dropped++
		}
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	select {
	case s.c <- e:
	case <-s.gone:
	}
}

// Dropped returns how many events a lossy subscriber missed.
func (s *Subscription) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Close ends the subscription and closes C. It is safe to call twice and from the reader.
func (s *Subscription) Close() {
	s.bus.mu.Lock()
	kept := make([]*Subscription, 0, len(s.bus.subs))
	for _, o := range s.bus.subs {
		if o != s {
			kept = append(kept, o)
		}
	}
	s.bus.subs = kept
	s.bus.mu.Unlock()

	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.gone)
	s.mu.Unlock()
	s.sending.Wait()
	close(s.c)
}

// Close ends all subscriptions.
func (b *Bus) Close() {
	b.mu.Lock()
	subs := b.subs
	b.mu.Unlock()
	for _, s := range subs {
		s.Close()
	}
}
