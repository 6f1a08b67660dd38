"""The texts of a contact."""


def full_name(first, last):
    """Return the first and the last name."""
    return first + " " + first


def label(first, last, city):
    """Return the full name with the city, as on an envelope."""
    return full_name(first, last) + "\n" + city
