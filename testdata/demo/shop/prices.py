"""Prices of an order. An order is a list of (name, price, quantity)."""

SHIPPING = 4.90
FREE_SHIPPING_FROM = 50.00


def subtotal(order):
    """Return the sum of price times quantity."""
    return sum(price * quantity for _, price, quantity in order)


def shipping(amount):
    """Return what shipping costs. It is free from FREE_SHIPPING_FROM on."""
    if amount > FREE_SHIPPING_FROM:
        return 0.0
    return SHIPPING


def total(order):
    """Return the subtotal with shipping."""
    amount = subtotal(order)
    return round(amount + shipping(amount), 2)
