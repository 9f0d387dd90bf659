"""An exception that leaves a generator ends it: code that reads on finds nothing more and misses rows silently."""

import inspect
from itertools import pairwise
from types import TracebackType

from pystorm_source.errors import TopologyError
from pystorm_source.errors.user_frames import OURS, frames_of, is_library, package_of

RANGES = "pystorm_source.data_sources.ranges"
"""Reads a partition anew after an exception, with all generators behind its own."""


def refuse_ended_generator(spout: str, method: str, error: BaseException) -> None:
    """Raises TopologyError if a spout's call wants to go on later, but its exception has ended a generator."""
    ended = ended_generator(error)
    if ended is None:
        return
    code = ended.tb_frame.f_code
    raise TopologyError(
        f"{method}() of spout {spout!r} must not raise RetryLater inside of a generator: it has ended "
        f"{code.co_qualname}(), and the rows that were left there would be lost. Ask the source outside of it, "
        f"or make a new generator in the next call. Given: {type(error).__name__} from line "
        f"{ended.tb_lineno} of {code.co_filename}",
        code="PYSTORM_INVALID_COMPONENT",
    ) from error


def ended_generator(error: BaseException) -> TracebackType | None:
    """Returns where the exception left the first generator that it has ended.

    A generator between libraries does not count: none of the spout's own code can go on with it. The generator of a
    ``contextlib`` context manager does not count either: it ends with the call in any case.
    """
    frames = list(frames_of(error.__traceback__))
    own = next((package for package in map(package_of, frames) if package not in OURS), "")

    def is_foreign(trace: TracebackType) -> bool:
        return is_library(trace) and package_of(trace) != own

    for before, trace in pairwise(frames):
        module = before.tb_frame.f_globals.get("__name__")
        if module == RANGES:
            return None
        if not trace.tb_frame.f_code.co_flags & inspect.CO_GENERATOR or module == "contextlib":
            continue
        if not (is_foreign(before) and is_foreign(trace)):
            return trace
    return None
