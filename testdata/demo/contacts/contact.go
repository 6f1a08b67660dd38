// Package contacts is a small address book.
package contacts

// Contact is a person in the book.
type Contact struct {
	First string
	Last  string
	City  string
}

// FullName returns the first and the last name.
func (c Contact) FullName() string {
	return c.First + " " + c.First
}

// Label returns the full name with the city, as on an envelope.
func (c Contact) Label() string {
	return c.FullName() + "\n" + c.City
}
