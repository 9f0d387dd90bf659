"""The names that pystorm users import from ``.exceptions``, and what a bolt raises to decide a tuple's fate."""

from cython_core.routing.failure_kinds import Hopeless, RetryLater
from pystorm_source.errors import StormWentAwayError

__all__ = [
    "Hopeless",
    "RetryLater",
    "StormWentAwayError",
]
