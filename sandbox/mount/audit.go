package mount

import "sync"

// Action is what a guest did or tried to do with a path.
type Action string

const (
	Read    Action = "read"
	List    Action = "list"
	Write   Action = "write"
	Create  Action = "create"
	Mkdir   Action = "mkdir"
	Remove  Action = "remove"
	Rename  Action = "rename"
	Link    Action = "link"
	Symlink Action = "symlink"
	Times   Action = "times"
	// Lookup is every operation that only asks about a path. It is recorded when it is refused.
	Lookup Action = "lookup"
)

// Event is one entry of the audit.
type Event struct {
	Action Action `json:"action"`
	// Path is the path as the guest sees it.
	Path string `json:"path"`
	// To is the second path of a rename or link.
	To string `json:"to,omitempty"`
	// Refused says why the operation was not allowed; empty when it was done. A plain failure, such as a file that
	// does not exist, is no refusal and is not recorded.
	Refused string `json:"refused,omitempty"`
	// Count is the number of equal events.
	Count int `json:"count"`
}

// Bounds of an audit: a guest that touches more gets a record that says that it is cut.
const (
	maxAuditEvents = 10000
	maxAuditBytes  = 4 << 20
)

// Audit collects what the guests of one call opened, changed and were refused. Equal events are counted, not
// repeated. It is safe for concurrent use.
type Audit struct {
	mu     sync.Mutex
	index  map[Event]int
	events []Event
	bytes  int
	cut    bool
}

func (a *Audit) add(e Event) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i, ok := a.index[e]; ok {
		a.events[i].Count++
		return
	}
	a.bytes += len(e.Path) + len(e.To) + len(e.Refused)
	if len(a.events) >= maxAuditEvents || a.bytes > maxAuditBytes {
		a.cut = true
		return
	}
	if a.index == nil {
		a.index = make(map[Event]int)
	}
	a.index[e] = len(a.events)
	e.Count = 1
	a.events = append(a.events, e)
}

// Events returns what was collected, in the order of first occurrence, and whether something was left out.
func (a *Audit) Events() (events []Event, cut bool) {
	if a == nil {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Event(nil), a.events...), a.cut
}
