"""The names that pystorm users import from ``.exceptions``."""

from pystorm_source.errors import StormWentAwayError

__all__ = [
    "StormWentAwayError",
]
