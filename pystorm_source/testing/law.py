"""Laws of components, and the errors for broken ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Thread
from types import FrameType
from typing import Any, Self

from cython_core.executors.executor import ComponentFailed
from pystorm_source.api import Component
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ContractBroken, PystormError, TupleFailed, given, said
from pystorm_source.errors.conditions import Code
from pystorm_source.errors.user_frames import OURS, trim
from pystorm_source.testing.watch import GRACE_SECONDS, interrupted_threads, let_come
from pystorm_source.worker.failure import tuple_failed

RETURNS = "every call returns"
RETURNS_REMEDY = (
    "Give calls to the outside world a time-out. If the component is only slow: fewer rows, or a longer timeout"
)
PICKLES = "the class pickles"


@dataclass(frozen=True)
class Law:
    """``check(trial)`` raises ContractBroken if the tested component breaks the law."""

    says: str
    remedy: str
    check: Callable[[Any], None]

    def __str__(self) -> str:
        return self.says


def law_of(laws: list[Law], says: str, remedy: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Decorates the check of a law, and appends the law to ``laws``."""

    def add(check: Callable[[Any], None]) -> Callable[[Any], None]:
        laws.append(Law(says, remedy, check))
        return check

    return add


def broken(component: str, law: str, place: str, expected: str, found: str, remedy: str) -> ContractBroken:
    """Builds the error for a broken law."""
    where = f" at {place}" if place else ""
    error = ContractBroken(
        f"{component} breaks the law {law!r}{where}: expected {expected}. {remedy}. Given: {found}",
        code="PYSTORM_CONTRACT_BROKEN",
    )
    error.component, error.law, error.place = component, law, place
    error.expected, error.found, error.remedy = expected, found, remedy
    return error


class TimeLimit:
    """Calls functions in a separate thread, so that components that never return do not hold up the test.

    Uses one thread for all calls, because what a component opens may belong to its thread.
    """

    def __init__(self, component: str, seconds: float):
        self._component = component
        self._seconds = seconds
        self._clock = SystemClock()
        self._began = self._clock.monotonic()
        self._calls: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._thread = Thread(target=self._work, name="pystorm-verify", daemon=True)
        self._has_interrupted = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.put(None)
        if self._has_interrupted:
            self._thread.join(GRACE_SECONDS)
            let_come()

    def left(self) -> float:
        """Returns the seconds left, at least a hundredth."""
        return max(0.01, self._began + self._seconds - self._clock.monotonic())

    def call(self, function: Callable[[], Any]) -> Any:
        """Returns what the function returns. Raises what it raises; ContractBroken if time is up."""
        __tracebackhide__ = True
        self._calls.put(function)
        try:
            # The run's own watchdog goes first, because it knows more.
            answer, error = self._answers.get(timeout=self.left() + 3 * GRACE_SECONDS)
        except Empty:
            self._has_interrupted = True
            call = interrupted_threads([self._thread]) or "the checks were still running"
            raise self.over(call) from None
        if isinstance(error, PystormError):
            raise error.with_traceback(None)  # its cause has the user's frames; the others say nothing
        if error is not None:
            raise error
        return answer

    def over(self, found: str) -> ContractBroken:
        """Builds the error for a call that did not return in time."""
        expected = f"an end of all checks within {self._seconds:g} seconds"
        return broken(self._component, RETURNS, "", expected, found, RETURNS_REMEDY)

    def _work(self) -> None:
        while (function := self._calls.get()) is not None:
            try:
                self._answers.put((function(), None))
            except BaseException as error:
                self._answers.put((None, error))


LATE = "nothing is emitted after the run"
LATE_REMEDY = (
    "Threads of the bolt emit before process() returns, or anchor to a tuple that has no verdict yet, and end in "
    "cleanup(); for calls that wait, write an AsyncBolt"
)
_IN_RANGE = "offsets lie in the range and ascend"
OF_ERRORS: dict[Code, tuple[str, str]] = {
    "PYSTORM_EMIT_NOT_A_LIST": (
        "emits are lists or tuples",
        "emit([value]): one value for each field, in a list or a tuple",
    ),
    "PYSTORM_ROWS_RETURNED": (
        "rows leave by emit",
        "self.emit([value]) for each row, instead of returning rows",
    ),
    "PYSTORM_UNKNOWN_STREAM": (
        "emits go to declared streams",
        "Declare the stream in `outputs`: Stream(['field type'], name='stream')",
    ),
    "PYSTORM_WRONG_NUMBER_OF_FIELDS": (
        "an emit has a value for each declared field",
        "Emit a value for each field of `outputs` and for every row, None for what is unknown",
    ),
    "PYSTORM_VALUE_DOES_NOT_FIT": (
        "emits fit the declared types",
        "Emit values of the types in `outputs`, or declare the types that the values have",
    ),
    "PYSTORM_OFFSET_OUT_OF_RANGE": (
        _IN_RANGE,
        "Stop before `end`: return False from next_tuple() instead of emitting offset `end`",
    ),
    "PYSTORM_OFFSET_MISSING": (_IN_RANGE, "emit(values, tup_id=offset) with the offset, an int"),
    "PYSTORM_EMIT_OUTSIDE_OF_RUN": (LATE, LATE_REMEDY),
    "PYSTORM_ANCHOR_CLOSED": (
        "emits come before the verdict of their tuple",
        "Emit first, then ack; in an AsyncBolt await what process() starts; or emit with anchors=[]",
    ),
}
"""Code of an error of ``emit`` → the law that it breaks, and the remedy."""


def law_of_error(error: BaseException) -> tuple[str, str] | None:
    """Returns the law that an exception shows to be broken, and the remedy; None for the component's own exceptions."""
    code: Any = getattr(cause_of(error), "code", None)  # foreign exceptions may have a code of any type, too
    return next((law for each, law in OF_ERRORS.items() if each == code), None)


def cause_of(error: BaseException) -> BaseException:
    """Returns the component's own exception."""
    while isinstance(error, (ComponentFailed, TupleFailed)) and error.__cause__ is not None:
        error = error.__cause__
    return error


def own_failure(component: str, error: BaseException, where: str = "") -> BaseException:
    """Returns what to raise for an exception that breaks no law: the failure as a run raises it, or an error of this
    package itself."""
    if isinstance(error, ComponentFailed):
        failure = error
    elif isinstance(error, PystormError):
        return trim(error)
    else:
        failure = ComponentFailed(component, 1, method_of(error), None, -1)
        failure.__cause__ = error
    failed = tuple_failed(failure, where)
    failed.__cause__ = trim(cause_of(error))
    return failed


def method_of(error: BaseException) -> str:
    """Returns the component's method that raised, by the traceback."""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if isinstance(frame.f_locals.get("self"), Component) and not _is_ours(frame):
            return frame.f_code.co_name
        trace = trace.tb_next
    return "a call"


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in OURS


def raised(error: BaseException) -> str:
    """``on_call() raised ValueError: no``, for ``found``."""
    method = f"{error.method}() " if isinstance(error, ComponentFailed) else ""
    return f"{method}raised {said(cause_of(error))}"


def check_pickles(cls: type, remedy: str) -> type:
    """Returns the class after a round trip through Spark's pickle. Raises ContractBroken."""
    pickle = _pickle_of_spark()
    if pickle.__name__ == "pickle" and "<locals>" in cls.__qualname__:
        return cls  # only Spark's own pickle, which is not installed, ships such a class
    try:
        copied: type = pickle.loads(pickle.dumps(cls))
    except Exception as error:
        raise broken(
            cls.__name__, PICKLES, "", "a class that travels to Spark's tasks", f"pickling raised {said(error)}", remedy
        ) from error
    return copied


def _pickle_of_spark() -> Any:
    """Returns Spark's pickle or, if Spark is not installed, Python's: both pickle a module's classes by name."""
    for name in ("pyspark.cloudpickle", "cloudpickle"):
        if find_spec(name.partition(".")[0]) is not None:
            return import_module(name)
    return import_module("pickle")


# --- comparing rows


def key_of(value: Any) -> Any:
    """Returns a hashable key, equal for values that look the same to a reader, NaN included."""
    if isinstance(value, (list, tuple)):
        return (type(value).__name__ if isinstance(value, list) else "tuple", *map(key_of, value))
    if isinstance(value, dict):
        return ("dict", frozenset((key_of(key), key_of(each)) for key, each in value.items()))
    if isinstance(value, (set, frozenset)):
        return ("set", frozenset(map(key_of, value)))
    cls: Any = type(value)
    if cls.__repr__ is object.__repr__:
        return (type(value).__name__, key_of(getattr(value, "__dict__", {})))
    return (type(value).__name__, repr(value))


def difference(expected: Sequence[Any], found: Sequence[Any]) -> tuple[str, str] | None:
    """Returns what was expected and found at the first row that differs; None if no row differs."""
    for number, (one, other) in enumerate(zip(expected, found, strict=False)):
        if key_of(one) != key_of(other):
            return f"row {number + 1} to be {given(one)}", given(other)
    if len(expected) == len(found):
        return None
    longer = expected if len(expected) > len(found) else found
    more = given(longer[min(len(expected), len(found))])
    first = f"the first one too {'few' if longer is expected else 'many'} is {more}"
    return f"{len(expected)} rows", f"{len(found)} rows; {first}"
