"""The doors that users call: an error that leaves one shows the user's own frames and its message.

Between the two lie 5 to 15 frames of this package, which tell a user nothing and push the call out of sight. Python's
log has them: the logger ``pystorm_source.errors.door`` at DEBUG.
"""

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from pystorm_source.errors import InternalError, PystormError, TupleFailed
from pystorm_source.errors.user_frames import only_users

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)


def door(function: Callable[P, T]) -> Callable[P, T]:
    """A function or method that users call. What goes wrong inside of a component, and a fault of this package, leave
    with every frame: they have a place of their own that shows them, or need them."""

    @functools.wraps(function)
    def inside(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*args, **keywords)
        except (InternalError, TupleFailed):
            raise
        except PystormError as error:
            _log.debug("the frames of an error", exc_info=True)
            only_users(error)
            raise  # bare: the traceback stays as it was left, without this frame

    return inside
