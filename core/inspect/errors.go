package inspect

import "fmt"

// An IDError says that a token id is not in the vocabulary.
type IDError struct {
	Index int // in the request
	ID    int32
	Size  int // of the vocabulary
}

func (e *IDError) Error() string {
	return fmt.Sprintf("token %d at index %d is outside the vocabulary of %d", e.ID, e.Index, e.Size)
}
