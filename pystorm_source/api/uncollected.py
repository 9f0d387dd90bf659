"""Spares Python's garbage collector what is made many at a time and lives on."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """The garbage collector rests while the block runs, in all threads: for a hundred thousand objects that all live
    on. It would look through the whole heap several times, which takes longer than to make them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
