"""An exception that leaves a generator ends it: code that reads on finds nothing more and misses rows silently."""

import inspect
from itertools import pairwise
from types import TracebackType

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import TopologyError
from pystorm_source.errors.user_frames import OURS, frames_of, is_library, package_of

ANEW = ("contextlib", "pystorm_source.data_sources.ranges")
"""Modules that make a new generator in each call."""


def refuse_ended_generator(spout: str, method: str, error: BaseException) -> None:
    """Raises TopologyError if a spout's call wants to go on later, but its exception has ended a generator.

    A generator between libraries does not count: none of the spout's own code can go on with it.
    """
    frames = list(frames_of(error.__traceback__))
    own = next((package for package in map(package_of, frames) if package not in OURS), "")

    def is_foreign(trace: TracebackType) -> bool:
        return is_library(trace) and package_of(trace) != own

    for before, trace in pairwise(frames):
        code = trace.tb_frame.f_code
        if not code.co_flags & inspect.CO_GENERATOR or before.tb_frame.f_globals.get("__name__") in ANEW:
            continue
        if is_foreign(before) and is_foreign(trace):
            continue
        what = "RetryLater" if isinstance(error, RetryLater) else "what topology.retry.on retries"
        raise TopologyError(
            f"{method}() of spout {spout!r} must not raise {what} inside of a generator: it has ended "
            f"{code.co_qualname}(), and the rows that were left there would be lost. Ask the source outside of it, "
            f"or make a new generator in the next call. Given: {type(error).__name__} from line "
            f"{trace.tb_lineno} of {code.co_filename}",
            code="PYSTORM_INVALID_COMPONENT",
        ) from error
