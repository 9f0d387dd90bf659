"""Scripts that a spout plays in a test, and their progress."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from pystorm_source.api import ReliableSpout
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import ArgumentTypeError, TopologyError, given


class Marker(Enum):
    """The events of a script other than rows."""

    EOF = "the micro-batch ends here; the rows after it come in the next one, on the same warm worker"
    FAIL = "the tree of the preceding row is failed once, instead of acked"
    ABORT = "the task dies here once, as by kill -9, and the micro-batch is run again in a new worker"


EOF, FAIL, ABORT = Marker.EOF, Marker.FAIL, Marker.ABORT


@dataclass(frozen=True)
class PAUSE:
    """In a script of a ``ScriptedSpout``: no row arrives for that long.

    Args:
        seconds (float): seconds of the engine's clock; a ManualClock does not wait.

    Example:
        >>> from pystorm_source.testing import PAUSE, ScriptedSpout, SystemClock, run_topology
        >>> class Hours(Topology):
        ...     lines = ScriptedSpout.of(["line string"], ["before"], PAUSE(3600), ["after"]).spec()
        >>> start = SystemClock().monotonic()
        >>> run_topology(Hours).rows("lines")
        [('before',), ('after',)]
        >>> SystemClock().monotonic() - start < 60
        True
    """

    seconds: float


@dataclass(frozen=True)
class ON:
    """In a script of a ``ScriptedSpout``: a row of another stream than the default one.

    Args:
        stream (str): the stream.
        values (list | tuple): one value for each of its fields.

    Example:
        >>> from pystorm_source.testing import ON, ScriptedSpout, run_topology
        >>> outputs = ["line string", Stream(["error string"], name="errors")]
        >>> class Errors(Topology):
        ...     lines = ScriptedSpout.of(outputs, ["fine"], ON("errors", ["broken"])).spec()
        >>> run_topology(Errors).rows("lines", "errors")
        [('broken',)]
    """

    stream: str
    values: list[Any] | tuple[Any, ...]


class ScriptedSpout(ReliableSpout):
    """A spout that plays a script in a test: rows, and what may go wrong at the worst moment.

    A script holds lists or tuples of values, and markers: ``PAUSE(seconds)``, ``ON(stream, values)``, ``EOF`` (the
    micro-batch ends), ``FAIL`` (the tree of the row before fails once), ``ABORT`` (the task dies once, as by kill -9).
    The tuple id of a row is its number in the script, from 0 on, without markers.

    Attributes:
        rows (list): the script. Defaults to ().

    Raises:
        ArgumentTypeError: the script holds something other than rows and markers.
        TopologyError: a FAIL without a row before it.

    Example:
        >>> from pystorm_source.testing import EOF, FAIL, ScriptedSpout, run_topology
        >>> class Scripted(Topology):
        ...     lines = ScriptedSpout.of(["line string"], ["one"], FAIL, EOF, ["two"]).spec()
        >>> result = run_topology(Scripted)
        >>> result.micro_batches, result.retries["lines"]
        (2, 1)
    """

    rows: ClassVar[Any] = ()
    _play: "Play | None" = None
    _failing = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Play(cls.rows)

    @classmethod
    def of(cls, outputs: list[Any], *rows: Any) -> "type[ScriptedSpout]":
        """A class with this script, for its ``spec()``.

        Args:
            outputs (list[str | Stream]): what the spout declares.
            *rows (list | tuple | Marker): the script.

        Returns:
            type[ScriptedSpout]: the class.
        """
        return type("ScriptedSpout", (cls,), {"outputs": outputs, "rows": rows})

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Begins the script.

        Raises:
            TopologyError: outside of ``run_topology``.
        """
        if self._play is None:
            raise TopologyError(
                "a ScriptedSpout is played by run_topology only: elsewhere use a MemorySpout. "
                f"Given: {context.get('componentid')!r}",
                code="PYSTORM_INVALID_ARGUMENT",
            )

    def next_tuple(self) -> bool | None:
        play = self._play
        assert play is not None
        step = play.next()
        if step is None:
            return False if play.over else None
        number, row = step
        if isinstance(row, ON):
            self.emit(row.values, tup_id=number, stream=row.stream)
        else:
            self.emit(row, tup_id=number)
        return None

    @property
    def _pystorm_waits(self) -> bool:
        """For the scheduler: having no row now does not end the micro-batch."""
        return self._play is not None and not self._play.over

    def ack(self, tup_id: Any) -> None:
        # The last fail of a tuple without retries also arrives here; a FAIL must not change it.
        if self._play is not None and not self._failing and self._play.fails(tup_id):
            self.fail(tup_id)
        else:
            super().ack(tup_id)

    def fail(self, tup_id: Any) -> None:
        self._failing = True
        try:
            super().fail(tup_id)
        finally:
            self._failing = False


class Play:
    """The progress of a script; outlives the workers that play it."""

    def __init__(self, rows: Iterable[Any], clock: Clock | None = None):
        self.clock = clock or SystemClock()
        self.die: Callable[[], None] = lambda: None
        self.over = False
        self.failed = 0
        self._rows = tuple(rows)
        self._numbers: list[int] = []
        self._to_fail: dict[int, int] = {}
        self.wakes: float | None = None
        self._at = self._begun = self._failed_before = 0
        self._died: set[int] = set()
        count = 0
        for i, row in enumerate(self._rows):
            self._numbers.append(count)
            if row is FAIL:
                if i == 0 or not (self._rows[i - 1] is FAIL or _is_row(self._rows[i - 1])):
                    raise TopologyError(
                        f"FAIL must follow the row that it fails. Given: {given(self._rows[: i + 1])}",
                        code="PYSTORM_INVALID_ARGUMENT",
                    )
                self._to_fail[count - 1] = self._to_fail.get(count - 1, 0) + 1
            elif _is_row(row):
                count += 1
            elif not isinstance(row, (Marker, PAUSE)):
                raise ArgumentTypeError(
                    f"a script holds lists or tuples of values, and markers. Given: {given(row)}",
                    code="PYSTORM_INVALID_ARGUMENT",
                )

    @property
    def done(self) -> bool:
        """Whether nothing is left to play."""
        return self._at >= len(self._rows)

    def begin(self) -> None:
        """Begins the next micro-batch."""
        self._begun, self._failed_before, self.over = self._at, self.failed, False

    def repeat(self) -> None:
        """Begins the micro-batch again."""
        self._at, self.failed, self.over, self.wakes = self._begun, self._failed_before, False, None

    def next(self) -> tuple[int, Any] | None:
        """Returns the next row with its number; None during a pause and after the end of the micro-batch.

        At an ABORT, the task dies the first time.
        """
        while not self.over and not self.done:
            row, place = self._rows[self._at], self._at
            if isinstance(row, PAUSE):
                now = self.clock.monotonic()
                self.wakes = now + row.seconds if self.wakes is None else self.wakes
                if now < self.wakes:
                    return None
                self.wakes = None
            self._at += 1
            if row is EOF:
                self.over = True
            elif row is ABORT and place not in self._died:
                self._died.add(place)
                self.die()
            elif _is_row(row):
                return self._numbers[place], row
        self.over = True
        return None

    def fails(self, number: int) -> bool:
        """Whether that row must fail now; each FAIL counts once."""
        left = self._to_fail.get(number, 0)
        if left:
            self._to_fail[number] = left - 1
            self.failed += 1
        return left > 0


def _is_row(row: Any) -> bool:
    return isinstance(row, (list, tuple, ON))
