"""The job of ``orders``, where each package decodes JSON by its own reader: what is made of the fields."""

from benchmarks.job_programs.orders import CATEGORIES, CURRENCIES, REGIONS, Priced

COLUMNS = ("id", "customer", "item", "country", "currency", "quantity", "price", "status")


def priced(
    number: int, customer: str, item: str, country: str, currency: str, quantity: int, price: int, status: str
) -> Priced | None:
    """Price and category of an order, by table; None if it was cancelled."""
    if status == "cancelled":
        return None
    return number, customer, CATEGORIES.get(item, "other"), REGIONS[country], quantity * price * CURRENCIES[currency]
