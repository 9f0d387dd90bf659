"""Names in the text of one option, between commas."""

from collections.abc import Iterable


def listed(text: str) -> list[str]:
    """Those that are not empty, without the spaces around them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def distinct(text: str) -> list[str]:
    """As ``listed``, each once."""
    return list(dict.fromkeys(listed(text)))


def joined(names: str | Iterable[str] | None) -> str | None:
    """The option's text, of names or of that text itself; None stays None."""
    return names if names is None or isinstance(names, str) else ",".join(names)
