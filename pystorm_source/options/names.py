"""Names in an option's text, separated by commas."""

from collections.abc import Iterable


def listed(text: str) -> list[str]:
    """Splits the text into names; strips spaces and skips empty names."""
    return [part.strip() for part in text.split(",") if part.strip()]


def distinct(text: str) -> list[str]:
    """Like ``listed``, without duplicates."""
    return list(dict.fromkeys(listed(text)))


def joined(names: str | Iterable[str] | None) -> str | None:
    """Joins names into the option's text; keeps a text or None as it is."""
    return names if names is None or isinstance(names, str) else ",".join(names)
