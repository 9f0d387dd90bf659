"""How much a test tries if more would find more: rounds, items, examples.

``make test`` tries a fifth of what the test names, and 20 examples instead of 100 of a property that names no number.
With ``CI=true``, as ``.ci/run`` sets it, a test tries all of it; with ``PYSTORM_FEWER=1`` it does not: gates that run
tests again, with other versions of libraries or of Python, say so.
"""

import os

EVERYTHING = os.environ.get("CI") == "true" and os.environ.get("PYSTORM_FEWER") != "1"
SHARE = 5
"""Larger: rare orders and values are met by ``.ci/run`` only. Smaller: people wait longer for ``make test``."""


def sized(full: int) -> int:
    """``full`` if everything is tried, else a fifth of it, but at least one."""
    return full if EVERYTHING else max(1, full // SHARE)
