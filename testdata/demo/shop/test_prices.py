import unittest

from invoice import invoice
from prices import shipping, subtotal, total


class PricesTest(unittest.TestCase):
    def test_subtotal(self):
        self.assertEqual(subtotal([("Assam", 8.00, 2), ("Sencha", 12.50, 1)]), 28.50)

    def test_small_order_pays_shipping(self):
        self.assertEqual(total([("Assam", 8.00, 1)]), 12.90)

    def test_shipping_is_free_from_fifty_on(self):
        self.assertEqual(shipping(50.00), 0.0)

    def test_large_order_ships_free(self):
        self.assertEqual(total([("Gyokuro", 30.00, 2)]), 60.00)

    def test_invoice(self):
        self.assertEqual(invoice([("Assam", 8.00, 1)]), "1 x Assam: 8.00\nshipping: 4.90\ntotal: 12.90")


if __name__ == "__main__":
    unittest.main()
