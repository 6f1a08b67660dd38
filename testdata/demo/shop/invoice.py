"""The invoice as text."""

from prices import shipping, subtotal, total


def invoice(order):
    """Return one line for each item, then shipping and total."""
    lines = [f"{quantity} x {name}: {price * quantity:.2f}" for name, price, quantity in order]
    lines.append(f"shipping: {shipping(subtotal(order)):.2f}")
    lines.append(f"total: {total(order):.2f}")
    return "\n".join(lines)
