package session

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"atoll/core/atomicfile"
	"atoll/core/event"
)

const (
	metaFile = "meta.json"
	pidFile  = "pid"
	storeDir = "store"
)

// Meta is what a list shows of a session.
type Meta struct {
	ID        string    `json:"id"`
	Workspace string    `json:"workspace"`
	Title     string    `json:"title"`
	Mode      string    `json:"mode"`
	Model     string    `json:"model"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Turns     int       `json:"turns"`
	Messages  int       `json:"messages"`
	// Stop is how the last turn ended; empty while it runs and before the first.
	Stop event.Stop `json:"stop,omitempty"`
	// Open says that a process has the session open. It is set by List only.
	Open bool `json:"open,omitempty"`
	// Damaged is the error that keeps the session from being opened. It is set by List only.
	Damaged string `json:"damaged,omitempty"`
}

func metaOf(s *State) Meta {
	return Meta{
		ID: s.ID, Workspace: s.Workspace, Title: s.Title, Mode: s.Mode, Model: s.Model,
		Created: s.Created.UTC(), Updated: s.Updated.UTC(), Turns: s.Turn, Messages: len(s.Messages), Stop: s.Stop,
	}
}

// writeMeta replaces meta.json in one step. It is not synced: a lost one is made again.
func writeMeta(dir string, m Meta) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write %s: %w", metaFile, err)
	}
	if err := atomicfile.Write(filepath.Join(dir, metaFile), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", metaFile, err)
	}
	return nil
}

// readMeta reads meta.json; ok is false where it is absent, unreadable or of another session.
func readMeta(dir, id string) (m Meta, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, metaFile))
	if err != nil || json.Unmarshal(b, &m) != nil || m.ID != id {
		return Meta{}, false
	}
	m.Open, m.Damaged = false, ""
	return m, true
}
