package contacts

import "testing"

func TestFullName(t *testing.T) {
	c := Contact{First: "Ada", Last: "Lovelace", City: "London"}
	if got := c.FullName(); got != "Ada Lovelace" {
		t.Errorf("FullName() = %q, want %q", got, "Ada Lovelace")
	}
}

func TestSearchNeedsTwoLetters(t *testing.T) {
	if got := Search([]Contact{{First: "Ada"}}, "a"); got != nil {
		t.Errorf("Search = %v, want nothing", got)
	}
}
