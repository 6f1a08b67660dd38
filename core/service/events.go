package service

import "atoll/core/event"

// Events calls fn for each journaled event of the session from number from on.
func (s *Session) Events(from uint64, fn func(event.Event) error) error {
	return s.log.Events(from, fn)
}
