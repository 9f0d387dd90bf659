"""Exceptions that tell what happens to a tuple that a bolt fails, or that a spout's source is busy. They are part of
the core because it checks each exception of a bolt for them."""

import math
from typing import Any

from cython_core.arrow.row_error import coded, shown

LONGEST_SECONDS = 86_400.0
"""Longer: one wrong answer of a service delays a micro-batch, which waits for its tuples, for days. Shorter: a service
that asks for some hours is called too early."""


class FailureKind(Exception):
    """The base of ``RetryLater`` and ``Hopeless``: a deliberate failure, so it ends no task and does not count as an
    error."""


class RetryLater(FailureKind):
    """Raise it in a bolt: the tuple fails, and its spout emits it again after that many seconds, or up to a fifth
    later.

    It is an attempt like any other (``topology.max.spout.retries``). The tuple waits in the engine's timing wheel
    without blocking a thread. Its micro-batch waits for it: for waits of minutes, use a separate query; for hours, a
    table.

    In a spout it says that the source is busy: the engine makes the same call again after that time, up to
    ``spout.unavailable.timeout``, and tuples that were emitted before stay emitted.

    Args:
        seconds (float): seconds, fractions allowed, from 0 to a day.
        reason (str): why, for the dead letter if no attempt is left. Defaults to "".

    Raises:
        ValueError: no such number of seconds.

    Example:
        >>> from pystorm_source import Bolt, RetryLater, Topology
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Call(Bolt):
        ...     outputs = ["n long"]
        ...     calls = 0
        ...     def process(self, tup):
        ...         self.calls += 1
        ...         if self.calls == 1:
        ...             raise RetryLater(30, "too many requests")
        ...         self.emit([tup.values.n])
        >>> class Calls(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[7]])
        ...     call = Call.spec(inputs=[numbers])
        >>> result = run_topology(Calls)  # in virtual time
        >>> result.rows("call"), result.retries["numbers"]
        ([(7,)], 1)
    """

    def __init__(self, seconds: float, reason: str = ""):
        number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if not number or not math.isfinite(seconds) or not 0 <= seconds <= LONGEST_SECONDS:
            raise coded(
                ValueError,
                "PYSTORM_INVALID_ARGUMENT",
                f"RetryLater(seconds) takes a number from 0 to {LONGEST_SECONDS:.0f}, a day: raise Hopeless for what "
                f"is to come back later than that; Given: {shown(seconds)}",
            )
        super().__init__(seconds, reason)
        self.seconds = float(seconds)
        self.reason = reason

    def __str__(self) -> str:
        return f"again after {self.seconds:g} s" + (f": {self.reason}" if self.reason else "")


class Hopeless(FailureKind):
    """Raise it in a bolt: no retry helps the tuple, so it is a dead letter at once, after one attempt.

    ``topology.dead.letter`` decides its fate; the dead letter has the reason given here. A tuple that is anchored to
    several spout tuples fails all of them.

    Args:
        reason (str): why. Defaults to "failed".

    Example:
        >>> from pystorm_source import Bolt, Hopeless, Topology
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Parse(Bolt):
        ...     outputs = ["n long"]
        ...     def process(self, tup):
        ...         if not tup.values.text.isdigit():
        ...             raise Hopeless(f"{tup.values.text} is no number")
        ...         self.emit([int(tup.values.text)])
        >>> class Parsed(Topology):
        ...     lines = MemorySpout.spec(fields=["text string"], rows=[["1"], ["x"]])
        ...     parse = Parse.spec(inputs=[lines])
        >>> result = run_topology(Parsed, {"topology.dead.letter": "stream"})
        >>> [dead] = result.rows("lines", "__dead_letter")
        >>> result.rows("parse"), dead[1], dead[2]
        ([(1,)], 'x is no number', 1)
    """

    def __init__(self, reason: str = "failed"):
        super().__init__(reason)
        self.reason = reason


def kind_of(error: Any, retry: Any) -> Any:
    """The cause that ``fail(tup, error=..., retry=...)`` passes on."""
    if not isinstance(retry, bool):
        raise coded(
            ValueError,
            "PYSTORM_INVALID_ARGUMENT",
            f"fail(tup, retry=...) takes True or False: to retry later, give error=RetryLater(seconds). Given: "
            f"{shown(retry)}",
        )
    if error is not None and not isinstance(error, BaseException):
        raise coded(
            ValueError,
            "PYSTORM_INVALID_ARGUMENT",
            f"fail(tup, error=...) takes an exception, such as RetryLater(30). Given: {shown(error)}",
        )
    if retry or isinstance(error, Hopeless):
        return error
    if error is None:
        return Hopeless()
    hopeless = Hopeless(f"{type(error).__name__}: {error}")
    hopeless.__cause__ = error
    return hopeless
