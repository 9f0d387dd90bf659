"""Orders as JSON of 200 bytes, and what is made of one; the same function for all sides."""

import json
from typing import Any

FIELDS = ("number", "customer", "category", "region", "cents")
CURRENCIES = {"EUR": 100, "USD": 92, "GBP": 117, "JPY": 1, "CHF": 104}
REGIONS = {"DE": "eu", "FR": "eu", "GB": "uk", "US": "na", "CA": "na", "JP": "asia", "CH": "eu"}
CATEGORIES = {f"item-{number:04d}": f"category-{number % 37}" for number in range(0, 1000, 2)}

Priced = tuple[int, str, str, str, int]


def order(number: int) -> bytes:
    """The order of that number: always the same one."""
    made = {
        "id": number,
        "customer": f"customer-{number * 7919 % 100_003:06d}",
        "item": f"item-{number % 1000:04d}",
        "country": list(REGIONS)[number % 7],
        "currency": list(CURRENCIES)[number % 5],
        "quantity": 1 + number % 9,
        "price": 5 + number % 400,
        "status": "cancelled" if number % 10 == 3 else "paid",
    }
    text = json.dumps(made)
    return f'{text[:-1]}, "note": "{"x" * (200 - len(text) - 12)}"}}'.encode()


def priced(value: bytes) -> Priced | None:
    """Price and category of an order, by table; None if it was cancelled."""
    made: dict[str, Any] = json.loads(value)
    if made["status"] == "cancelled":
        return None
    cents = made["quantity"] * made["price"] * CURRENCIES[made["currency"]]
    category = CATEGORIES.get(made["item"], "other")
    return made["id"], made["customer"], category, REGIONS[made["country"]], cents
