"""An exception that has left a generator has ended it: what reads on from it finds no more, and misses no row."""

import contextlib
import inspect
import traceback
from itertools import pairwise

from pystorm_source.errors import TopologyError


def refuse_ended_generator(spout: str, method: str, error: BaseException) -> None:
    """Raises TopologyError if the exception, by which a spout's call wants to go on later, has ended a generator.

    That of a ``with`` block made by ``contextlib`` is over with its call in any case.
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
