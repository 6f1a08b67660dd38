package contacts

import "strings"

// MinQuery is the least number of letters that a search takes.
const MinQuery = 2

// Search returns the contacts whose full name contains the query, in any case.
func Search(book []Contact, query string) []Contact {
	if len(query) < MinQuery {
		return nil
	}
	var found []Contact
	for _, c := range book {
		if strings.Contains(strings.ToLower(c.FullName()), strings.ToLower(query)) {
			found = append(found, c)
		}
	}
	return found
}
