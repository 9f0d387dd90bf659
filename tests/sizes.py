"""How much a test tries if more would find more: rounds, items, examples.

``make test`` tries a fifth of what the test names, and 20 examples instead of 100 of a property that names no number.
``PYSTORM_FEWER=0 .ci/run tests`` tries all of it: that is ``CI=true`` without ``PYSTORM_FEWER=1``, which the gates set
to end in time.
"""

import os

EVERYTHING = os.environ.get("CI") == "true" and os.environ.get("PYSTORM_FEWER") != "1"
SHARE = 5
"""Larger: rare orders and values are met only where all is tried. Smaller: people wait longer for ``make test``."""


def sized(full: int) -> int:
    """``full`` if everything is tried, else a fifth of it, but at least one."""
    return full if EVERYTHING else max(1, full // SHARE)
