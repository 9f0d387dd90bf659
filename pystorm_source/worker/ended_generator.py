"""An exception that leaves a generator ends it: code that reads on finds nothing more and misses rows silently."""

import contextlib
import inspect
import traceback
from itertools import pairwise

from pystorm_source.errors import TopologyError


def refuse_ended_generator(spout: str, method: str, error: BaseException) -> None:
    """Raises TopologyError if a spout's call wants to go on later, but its exception has ended a generator.

    The generator of a ``contextlib`` context manager does not count: it ends with the call in any case.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for before, frame in pairwise(frames):
        code = frame.f_code
        if code.co_flags & inspect.CO_GENERATOR and before.f_code.co_filename != contextlib.__file__:
            raise TopologyError(
                f"{method}() of spout {spout!r} must not raise RetryLater inside of a generator: it has ended "
                f"{code.co_qualname}(), and the rows that were left there would be lost. Ask the source outside of it, "
                f"or make a new generator in the next call. Given: {type(error).__name__} from line "
                f"{frame.f_lineno} of {code.co_filename}",
                code="PYSTORM_INVALID_COMPONENT",
            ) from error
