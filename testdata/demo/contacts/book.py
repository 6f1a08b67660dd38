"""An address book: a list of (first, last, city)."""

from contact import full_name

MIN_QUERY = 2  # the least number of letters that a search takes


def search(book, query):
    """Return the contacts whose full name contains the query, in any case."""
    if len(query) < MIN_QUERY:
        return []
    return [c for c in book if query.lower() in full_name(c[0], c[1]).lower()]
