"""The doors that users call: an error that leaves one shows only the user's own frames and its message.

The 5 to 15 frames of this package between them tell a user nothing and push the call out of sight. The logger
``pystorm_source.errors.door`` logs them at DEBUG.
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
    """Decorates a function or method that users call. Keeps every frame of TupleFailed, which has its own display, and
    of InternalError, which needs them."""

    @functools.wraps(function)
    def inside(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*args, **keywords)
        except (InternalError, TupleFailed):
            raise
        except PystormError as error:
            _log.debug("the frames of an error", exc_info=True)
            only_users(error)
            raise  # bare: keeps the traceback as it is, without this frame

    return inside
