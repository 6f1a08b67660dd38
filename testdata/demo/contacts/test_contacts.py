import unittest

from book import search
from contact import full_name


class ContactsTest(unittest.TestCase):
    def test_full_name(self):
        self.assertEqual(full_name("Ada", "Lovelace"), "Ada Lovelace")

    def test_search_needs_two_letters(self):
        self.assertEqual(search([("Ada", "Lovelace", "London")], "a"), [])


if __name__ == "__main__":
    unittest.main()
