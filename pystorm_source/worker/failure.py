"""Messages about components that failed, and about spout tuples that failed for good."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple

from cython_core.executors.executor import COMPONENTS_OWN, ComponentFailed
from cython_core.routing.batch_slice import BatchSlice
from cython_core.routing.failure_kinds import Hopeless
from cython_core.states.states_base import TIMERS
from cython_core.tuples.tuple import ColumnSlice
from pystorm_source.errors import PystormError, TupleFailed, cut, given, one_line, said
from pystorm_source.errors.conditions import Code
from pystorm_source.errors.redaction import redacted
from pystorm_source.errors.user_frames import in_a_line
from pystorm_source.worker.interrupt import CallTimedOut
from pystorm_source.worker.users_method import users_method

LONGEST = 200
TIMED_OUT = "timed out"
AGAIN = "correct the component and restart the query: with a checkpoint, it repeats this micro-batch"
OTHERWISE = (
    "; or go on without such tuples: exit_on_exception = False in the bolt, and topology.dead.letter=stream or drop"
)
MISTAKES = (PystormError, AttributeError, ImportError, NameError, TypeError)
"""Mistakes in the code, which fail each tuple: going on without these tuples would lose all."""
REMEDY_OF_LONG_CALL = (
    "give what the call waits for a time-out of its own (a request, a lock), let a loop end, or allow longer calls by "
    "topology.subprocess.timeout.secs; Spark runs the task again"
)
UNREACHABLE = re.compile(r"Connect|Timeout")
"""In the name of an exception or of a base class: Python's own, and the ones of HTTP clients that are not OSErrors."""
UNREACHED = "; or, if the source was down, raise RetryLater(seconds) for this exception: the query waits for the source"
OF_FILES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
"""OSErrors that say that something is missing or refused, which waiting does not mend."""
OF_SPOUTS = ("partitions", "earliest", "latest", "snapshot", "open", "next_tuple", "next_batch")
"""Methods of a spout that may raise ``RetryLater``."""
OF_TUPLES = ("process", "process_many", "process_batch", "group_key")
"""Methods whose exceptions concern a tuple: the topology may go on without it."""


Blame = tuple[str, int, str, Any, BaseException | None]
"""The failing call, as reported by the core: component, task, method, its tuple, the exception or None."""


class Failed(NamedTuple):
    """A tuple of a spout whose tree has failed.

    ``values``: as they were emitted; ``name``: for messages; ``offset``: -1 for none. ``attempts``: emits so far, this
    one included. ``component``, ``task``: where it failed; the spout's own if it timed out. ``event``: the cause as a
    phrase. ``reason``: its short form. ``cause``: the exception, if any. ``message_id``: of a spout without offsets;
    None if unknown.
    """

    values: tuple[Any, ...] | list[Any]
    name: str
    offset: int
    attempts: int
    component: str
    task: int
    event: str
    reason: str
    cause: BaseException | None = None
    message_id: Any = None

    @property
    def timed_out(self) -> bool:
        return self.reason == TIMED_OUT

    def blamed_on(self, component: str, task: int, what: str) -> "Failed":
        """The same tuple, with a time-out that this component caused."""
        return self._replace(component=component, task=task, event=f"{what}, and {self.event}")


class GivenUp(ComponentFailed):
    """A tuple still fails after its last retry, and ``topology.dead.letter`` is ``fail``.

    Additional attributes: ``failed``: the tuple and the reason; ``remedy``: how to allow more retries.
    """

    def __init__(self, component: str, task: int, failed: Failed, remedy: str):
        super().__init__(component, task, "fail", None, failed.offset)
        self.failed = failed
        self.remedy = remedy


class SpoutUnavailable(ComponentFailed):
    """A source was busy for longer than ``spout.unavailable.timeout``, ``given``. ``task``: 0 on the driver."""

    def __init__(self, component: str, task: int, method: str, attempts: int, seconds: float, given: str):
        super().__init__(component, task, method, None, -1)
        self.attempts = attempts
        self.seconds = seconds
        self.given = given


def failed(
    spout: tuple[str, int], values: Any, source: tuple[str, str], offset: int, attempts: int, blame: Blame | None
) -> Failed:
    """Describes a failed tuple. ``spout``: component and task; ``source``: component and stream that the tuple names;
    ``blame``: None for a time-out."""
    component, task, method, _, cause = blame or (*spout, "", None, None)
    method, name = _method(method, source), _named(tuple(values), (), source)
    event, reason = "the tuple was failed", "failed"
    if blame is None:
        event, reason = "the tuple timed out", TIMED_OUT
    elif cause is not None:
        reason = one_line(cut(cause.reason, LONGEST)) if isinstance(cause, Hopeless) else said(cause)
        event = f"the tuple was failed: {reason}" if method == "fail" else f"{method}() raised {said(cause)}"
    return Failed(values, name, offset, attempts, component, task, event, reason, cause)


def source_of(tup: Any) -> tuple[str, str]:
    """Component and stream that a tuple names."""
    return tup.component, tup.stream


def _named(values: tuple[Any, ...], fields: Sequence[str], source: tuple[str, str]) -> str:
    if source == TIMERS:
        return f"timer of key {shortened(values[:-1], fields[:-1])}"
    return f"tuple {shortened(values, fields)} of {'.'.join(source)}"


def _method(method: str, source: tuple[str, str]) -> str:
    """The user's name for it: ``process`` also gets tuples of timers and passes them to ``process_timer``."""
    return "process_timer" if source == TIMERS and method == "process" else method


def described(failed: Failed) -> str:
    """Describes a failed tuple: component, reason, values (shortened), stream, offset or message id, attempts."""
    return f"component {failed.component!r}, task {failed.task}: {failed.event}; {_place_of(failed)}"


def _place_of(failed: Failed) -> str:
    text = failed.name
    if failed.offset >= 0:
        text += f"; offset {failed.offset}"
    elif failed.message_id is not None:
        text += f"; message id {given(failed.message_id, LONGEST)}"
    return text + f"; {failed.attempts} attempt{'' if failed.attempts == 1 else 's'}"


def _otherwise(method: str, cause: BaseException | None) -> str:
    """Alternatives to mending the code."""
    if not isinstance(cause, Exception):
        return ""
    if method in OF_SPOUTS:
        is_down = isinstance(cause, OSError) and not isinstance(cause, OF_FILES)
        return UNREACHED if is_down or _is_unreachable(cause) else ""
    if method not in OF_TUPLES:
        return ""
    if _is_unreachable(cause):
        return f'; or have such calls tried again: topology.retry.on={{"{type(cause).__name__}": "retry"}}'
    return "" if isinstance(cause, MISTAKES) else OTHERWISE


def _is_unreachable(cause: Exception) -> bool:
    return any(UNREACHABLE.search(cls.__name__) for cls in type(cause).__mro__)


def tuple_failed(failure: ComponentFailed, where: str = "") -> TupleFailed:
    """Names component, task, method, exception, the tuple's values (shortened), offset and ``where``, the run."""
    if isinstance(failure, SpoutUnavailable):
        return _unavailable(failure, where)
    lost = failure.failed if isinstance(failure, GivenUp) else None
    cause = failure.__cause__
    method = users_method(failure.method, cause)
    if failure.tuple is not None:
        method = _method(method, source_of(failure.tuple))
    component, task = (failure.component, failure.task) if lost is None else (lost.component, lost.task)
    if lost is not None:
        event, input_, remedy = lost.event, _place_of(lost), failure.remedy  # type: ignore[attr-defined]
    else:
        event = f"{method}()" if method != "fail" else "the tuple was failed"
        event = event if cause is None else f"{method}() raised {said(cause)}"
        input_ = place(failure.tuple, failure.offset).removeprefix("; ")
        remedy = AGAIN + _otherwise(failure.method, cause)
        if isinstance(cause, CallTimedOut):
            remedy = REMEDY_OF_LONG_CALL
        elif method == "initialize":
            remedy = _remedy_of_start(cause) or remedy
    subject = f"component {component!r}, task {task}: "
    here = f"in {where}" if where else ""
    parts = [subject + event, input_, remedy if lost is not None else "", here]
    error = TupleFailed("; ".join(filter(None, parts)), code=_code_of(failure))
    if cause is not None:
        event = f"{event.partition(' raised ')[0]} raised {in_a_line(cause)}"
    error.component = component
    return _with_parts(error, subject + event, "; ".join(filter(None, [input_, here])), remedy)


def _unavailable(failure: SpoutUnavailable, where: str) -> TupleFailed:
    cause = failure.__cause__
    place = "on the driver" if failure.task == 0 else f"task {failure.task}"
    subject = f"component {failure.component!r}, {place}: {users_method(failure.method, cause)}() raised "
    attempts = f"{failure.attempts} attempts in {failure.seconds:,.0f} s"
    if where:
        attempts += f"; in {where}"
    remedy = (
        "restore the source and start the query again: with a checkpoint, it continues where it was; or raise "
        f"spout.unavailable.timeout. Given: {failure.given!r}"
    )
    what = subject + ("an exception" if cause is None else said(cause))
    error = TupleFailed(f"{what}; {attempts}; {remedy}", code="PYSTORM_SPOUT_UNAVAILABLE")
    error.component = failure.component
    return _with_parts(error, subject + ("an exception" if cause is None else in_a_line(cause)), attempts, remedy)


def _remedy_of_start(cause: BaseException | None) -> str:
    """The remedy for an ``initialize`` that lacks a key in its configuration, or a package; empty for another error."""
    key = cause.args[0] if isinstance(cause, KeyError) and cause.args else None
    if key == "path":
        return "give it by read_stream(..., path=...), or in option 'path'"
    if isinstance(key, str):
        return (
            f"if {key!r} is a key of the configuration, give it by config={{{key!r}: ...}} of the component's spec, in "
            f"Topology.config or in option 'config', or have the component do without: conf.get({key!r}, ...)"
        )
    if isinstance(cause, ModuleNotFoundError) and cause.name:
        package = cause.name.partition(".")[0]
        return f"install the package that has {package!r} where driver and executors run; `pystorm-source check` looks"
    return ""


def _code_of(failure: ComponentFailed) -> Code:
    timed_out = failure.failed.timed_out if isinstance(failure, GivenUp) else failure.method == "timeout"
    return "PYSTORM_TUPLE_TIMED_OUT" if timed_out else "PYSTORM_TUPLE_FAILED"


@contextmanager
def driver_call(component: str, method: str) -> Iterator[None]:
    """Wraps a call of a spout that the driver asks for heads, cuts and commits. Raises TupleFailed if it fails; errors
    of this package, and errors that may come from outside of it, pass through with a note."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, COMPONENTS_OWN) and not isinstance(error, PystormError):
            raise _driver_failed(component, method, error) from error
        error.add_note(f"Raised by {users_method(method, error)}() of spout {component!r}, on the driver.")
        raise


def _driver_failed(component: str, method: str, cause: BaseException) -> TupleFailed:
    subject = f"component {component!r}, on the driver: {users_method(method, cause)}() raised "
    error = TupleFailed(subject + said(cause), code="PYSTORM_TUPLE_FAILED")
    error.component = component
    remedy = _remedy_of_start(cause) if method == "initialize" else ""
    return _with_parts(error, subject + in_a_line(cause), "", remedy or AGAIN + _otherwise(method, cause))


def _with_parts(error: TupleFailed, what: str, place: str, remedy: str) -> TupleFailed:
    error.what, error.place, error.remedy = what, place, remedy
    return error


def place(tup: Any, offset: int) -> str:
    """``; tuple (5,) of s.default; offset 5``: the input of a component's call. ``tup``: None in a spout; ``offset``:
    below 0 for none."""
    text = ""
    if tup is not None and isinstance(tup.values, BatchSlice | ColumnSlice):
        first = shortened(tup.values.shown(0), tup.values.names)
        text = f"; a batch of {len(tup.values)} rows, {first} the first,"
        text += f" of {tup.component}.{tup.stream}"
    elif tup is not None:
        text = f"; {_named(tup.values, getattr(tup.values, '_fields', ()), source_of(tup))}"
    if offset >= 0:
        # A spout's current offset is unknown: this is the last emitted one.
        text += f"; {'offset' if tup is not None else 'last offset'} {offset}"
    return text


def shortened(values: tuple[Any, ...], fields: Sequence[str] = ()) -> str:
    """The values as they print, cut at ``LONGEST`` characters and without secrets (``fields`` may name them as such); a
    value that cannot be printed is named by its type."""
    parts: list[str] = []
    left = LONGEST
    for value, field in zip_longest(values, fields[: len(values)], fillvalue=""):
        if left <= 0:
            break
        if isinstance(value, (str, bytes)):
            value = value[: left + 1]  # the rest would be cut anyway
        try:
            part = repr(redacted(field, value))
        except Exception:
            part = f"<{type(value).__name__} that does not print>"
        parts.append(part)
        left -= len(part) + 2
    text = ", ".join(parts)
    text = f"({text},)" if len(values) == 1 else f"({text})"
    return text if left >= 0 and len(parts) == len(values) else text[:LONGEST] + "…"
