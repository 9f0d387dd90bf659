"""The border to Spark: an error that crosses it says what its user needs, first and without frames of this package.

Spark's Python processes send the driver a text: the traceback down to the error, its causes and its message, or only
the message and its notes if SPARK_HIDE_TRACEBACK is set, which Spark does for ``pyspark.udf.hideTraceback.enabled``.
The JVM prints that text once for each of its layers, four times for a streaming query: it must be short.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pystorm_source.errors import InternalError, PystormError, TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.errors.known_secrets import without_secrets
from pystorm_source.errors.user_frames import users_traceback

HIDE = "SPARK_HIDE_TRACEBACK"
LOCALS = "SPARK_TRACEBACK_WITH_LOCALS"
"""Makes Spark print the local variables of frames, too: frames of this package have options with their secrets."""


@contextmanager
def spark_border() -> Iterator[None]:
    """Wraps all that Spark calls; also a decorator. Errors of this package leave with what concerns the user: a
    TupleFailed with its FailureBlock, the others with their message and the user's frames, if any.

    A fault of this package leaves with its full traceback, but without local variables.
    """
    try:
        yield
    except InternalError:
        _hide_locals()
        raise
    except PystormError as error:
        raise _for_users(error) from None
    except Exception:
        _hide_locals()
        raise


def _for_users(error: PystormError) -> PystormError:
    if isinstance(error, TupleFailed):
        block = FailureBlock.of(error)
        error.args = (f"\n{block.head}",)  # what Spark writes before it fills its line
        _note(error, block.frames)
    else:
        error.args = tuple(without_secrets(each) if isinstance(each, str) else each for each in error.args)
        _note(error, without_secrets(users_traceback(error.__cause__)) if error.__cause__ is not None else "")
    error.__cause__ = None
    _hide_traceback()
    return error


def _note(error: BaseException, frames: str) -> None:
    if frames:
        error.add_note(frames)


def _hide_traceback() -> None:
    # The process ends after it has sent this error, so that it hides no other one's traceback.
    if in_sparks_process():
        os.environ[HIDE] = "1"


def _hide_locals() -> None:
    if in_sparks_process():
        os.environ.pop(LOCALS, None)


def in_sparks_process() -> bool:
    """Whether this is a worker, planner or runner that Spark has started."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name.startswith("pyspark.")
