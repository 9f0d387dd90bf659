"""The test kit: a topology runs inside a test, without Spark and without waiting::

    result = run_topology(WordCount, config={"sentences.total": 2})
    assert result.rows("counts") == [("cow", 1), ("moon", 1)]

Time is a ``ManualClock`` that advances where a topology would wait: ticks, time-outs and pauses come at once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Literal

from pystorm_source.api import ComponentSpec, ReliableSpout, Topology
from pystorm_source.clock import Clock, ManualClock, SystemClock
from pystorm_source.errors import OptionError, TopologyError, TupleFailed
from pystorm_source.plan import Plan, compile_plan
from pystorm_source.storm_keys import check_topology_keys
from pystorm_source.worker import Worker
from pystorm_source.worker.local_run import Counts, LocalRun

__all__ = [
    "ABORT",
    "EOF",
    "FAIL",
    "ON",
    "PAUSE",
    "ManualClock",
    "Result",
    "ScriptedSpout",
    "SystemClock",
    "run_topology",
]


class Marker(Enum):
    """What a script may hold beside rows."""

    EOF = "the micro-batch ends here; what follows comes in the next one, on the same warm worker"
    FAIL = "the tree of the row before is failed once, instead of acked"
    ABORT = "the task dies here once, as by kill -9, and the micro-batch is run again in a new worker"


EOF, FAIL, ABORT = Marker.EOF, Marker.FAIL, Marker.ABORT


@dataclass(frozen=True)
class PAUSE:
    """In a script: nothing comes for that long."""

    seconds: float


@dataclass(frozen=True)
class ON:
    """In a script: a row of another stream than the default one."""

    stream: str
    values: list[Any] | tuple[Any, ...]


class ScriptedSpout(ReliableSpout):
    """A spout that plays ``rows``: lists or tuples of values, and the markers PAUSE, EOF, FAIL, ABORT and ON.

    The tuple id of a row is its number in the script, from 0 on, markers not counted::

        class Scripted(WordCount):
            lines = ScriptedSpout.of(["line string"], ["one"], EOF, ["two"]).spec()

    Raises TypeError for what is neither a row nor a marker, ValueError for a FAIL without a row before it.
    """

    rows: ClassVar[Any] = ()
    _play: "Play | None" = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Play(cls.rows)

    @classmethod
    def of(cls, outputs: list[Any], *rows: Any) -> "type[ScriptedSpout]":
        """A class with these ``outputs`` and ``rows``, for its ``spec()``."""
        return type("ScriptedSpout", (cls,), {"outputs": outputs, "rows": rows})

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Raises TopologyError outside of ``run_topology``."""
        if self._play is None:
            raise TopologyError(
                "a ScriptedSpout is played by run_topology only: elsewhere use a MemorySpout. "
                f"Given: {context.get('componentid')!r}"
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
        """For the scheduler: having nothing now is not the end of the micro-batch."""
        return self._play is not None and not self._play.over

    def ack(self, tup_id: Any) -> None:
        if self._play is not None and self._play.fails(tup_id):
            self.fail(tup_id)
        else:
            super().ack(tup_id)


class Play:
    """How far a script is played; outlives the workers that play it."""

    def __init__(self, rows: Iterable[Any], clock: Clock | None = None):
        self.clock = clock or SystemClock()
        self.die: Callable[[], None] = lambda: None
        self.over = False
        self.failed = 0
        self._rows = tuple(rows)
        self._numbers: list[int] = []
        self._to_fail: dict[int, int] = {}
        self._at = self._begun = 0
        self._wakes: float | None = None
        self._died: set[int] = set()
        count = 0
        for i, row in enumerate(self._rows):
            self._numbers.append(count)
            if row is FAIL:
                if i == 0 or not (self._rows[i - 1] is FAIL or _is_row(self._rows[i - 1])):
                    raise ValueError(f"FAIL stands behind the row that it fails. Given: {self._rows[: i + 1]!r:.200}")
                self._to_fail[count - 1] = self._to_fail.get(count - 1, 0) + 1
            elif _is_row(row):
                count += 1
            elif not isinstance(row, (Marker, PAUSE)):
                raise TypeError(f"a script holds lists or tuples of values, and markers. Given: {row!r:.200}")

    @property
    def done(self) -> bool:
        """Whether nothing is left to play."""
        return self._at >= len(self._rows)

    def begin(self) -> None:
        """The next micro-batch begins here."""
        self._begun, self.over = self._at, False

    def repeat(self) -> None:
        """The micro-batch begins again."""
        self._at, self.over, self._wakes = self._begun, False, None

    def next(self) -> tuple[int, Any] | None:
        """The next row with its number; None while there is nothing, and from the end of the micro-batch on.

        At an ABORT that was not yet the task dies.
        """
        while not self.over and not self.done:
            row, place = self._rows[self._at], self._at
            if isinstance(row, PAUSE):
                now = self.clock.monotonic()
                self._wakes = now + row.seconds if self._wakes is None else self._wakes
                if now < self._wakes:
                    return None
                self._wakes = None
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
        """Whether that row is to fail now; each FAIL counts once."""
        left = self._to_fail.get(number, 0)
        if left:
            self._to_fail[number] = left - 1
            self.failed += 1
        return left > 0


def _is_row(row: Any) -> bool:
    return isinstance(row, (list, tuple, ON))


class Result:
    """What a run of a topology gave.

    ``emitted``, ``executed``, ``acked``, ``failed``, ``unsettled`` (trees without a verdict): component → count.
    ``errors``: what components raised, as TupleFailed with the component's exception as cause. ``metrics``: component →
    what it reported. ``attempts``: workers that ran, one more than the task died; ``micro_batches``: those that ended.
    """

    def __init__(self, plan: Plan, rows: Mapping[tuple[str, str], list[tuple[Any, ...]]], counts: Counts):
        self.topology = plan.name
        zeros = dict.fromkeys((component.name for component in plan.components), 0)
        self.emitted = {**zeros, **counts.of("emitted")}
        self.executed = {**zeros, **counts.of("executed")}
        self.acked = {**zeros, **counts.of("acked")}
        self.failed = {**zeros, **counts.of("failed")}
        self.unsettled = {**zeros, **counts.of("unsettled")}
        self.metrics = counts.metrics
        self.errors: list[Exception] = counts.errors
        self.attempts = 1
        self.micro_batches = 0
        self._rows = rows

    def rows(self, component: str | ComponentSpec, stream: str = "default") -> list[tuple[Any, ...]]:
        """What that stream emitted, in order, in micro-batches that came to their end. Raises KeyError for others."""
        name = component.label if isinstance(component, ComponentSpec) else component
        if (name, stream) not in self._rows:
            streams = ", ".join(".".join(each) for each in self._rows)
            raise KeyError(f"topology {self.topology!r} has the streams {streams}. Given: {f'{name}.{stream}'!r}")
        return list(self._rows[name, stream])

    def __repr__(self) -> str:
        names = ("emitted", "executed", "acked", "failed", "unsettled")
        width = max(map(len, self.emitted), default=0)
        lines = [
            f"<Result of {self.topology}: {_counted(self.micro_batches, 'micro-batch')}, "
            f"{_counted(self.attempts, 'attempt')}, {_counted(len(self.errors), 'error')}",
            "  " + " " * width + "".join(f"{name:>11}" for name in names),
        ]
        for component in self.emitted:
            counts = "".join(f"{getattr(self, name)[component]:>11,}" for name in names)
            lines.append(f"  {component:{width}}{counts}")
        return "\n".join([*lines, *(f"  {error}" for error in self.errors)]) + ">"


class _TooLong(BaseException):
    """Raised by the watched clock, through whatever is running."""


class _WatchedClock:
    """``clock``, as long as no more than ``timeout`` seconds of the machine's pass."""

    def __init__(self, clock: Clock, timeout: float):
        self._clock = clock
        self._machine = SystemClock()
        self._end = self._machine.monotonic() + timeout

    def _watch(self) -> None:
        if self._machine.monotonic() > self._end:
            raise _TooLong

    def monotonic(self) -> float:
        self._watch()
        return self._clock.monotonic()

    def wall(self) -> float:
        return self._clock.wall()

    def sleep(self, seconds: float) -> None:
        self._watch()
        self._clock.sleep(seconds)


def run_topology(
    topology: type[Topology],
    config: Mapping[str, Any] | None = None,
    scheduler: Literal["inline"] = "inline",
    clock: Clock | None = None,
    seed: int | None = None,
    timeout: float = 60.0,
) -> Result:
    """Runs a topology in this process until its spouts have nothing more, and all of it has passed through.

    Args:
        topology: the class. Its PartitionedSpouts are read from their earliest offsets to what is the latest now; a
            spout without offsets is asked until it has nothing.
        config: goes over ``Topology.config``, as options of a query do; a component's own config stays on top.
        scheduler: "inline", one thread, is the only one.
        clock: the engine's; components that have a ``clock`` get it, too. Default: a ManualClock for the engine alone.
        seed: shuffles the order and the length of turns; the same seed gives the same run.
        timeout: seconds of the machine's clock. A component that never returns is not interrupted.

    Raises TimeoutError, naming what was still running. TopologyError and OptionError for what cannot run as it is
    declared. What components raise is in ``Result.errors``.
    """
    if scheduler != "inline":
        raise OptionError(f"the scheduler of run_topology is 'inline', one thread. Given: {scheduler!r}")
    check_topology_keys(config or {})
    plan = compile_plan(topology, config)
    watched = _WatchedClock(clock or ManualClock(), timeout)
    plays = _plays_of(plan, watched)

    def give_plays(worker: Worker) -> None:
        for executor in worker.executors:
            if executor.component in plays:
                plays[executor.component].repeat()
                executor.instance._play = plays[executor.component]

    streams = [(component.name, stream.name) for component in plan.components for stream in component.streams]
    run = LocalRun(plan, watched, seed, streams, clock, give_plays)
    for play in plays.values():
        play.die = run.die
    errors: list[Exception] = []
    try:
        _run_to_the_end(run, plays)
    except TupleFailed as error:
        errors.append(error)
    except _TooLong:
        raise TimeoutError(
            f"topology {plan.name!r} has not come to its end: {_still_running(run)}. Let its spouts end and its cycles "
            f"run out, or give run_topology a longer timeout. Given: timeout={timeout!r}"
        ) from None
    finally:
        run.stop()
    counts = run.counts()
    counts.errors += errors
    result = Result(plan, run.rows, counts)
    result.attempts, result.micro_batches = run.attempts, run.micro_batches
    for name, play in plays.items():
        result.acked[name] -= play.failed
        result.failed[name] += play.failed
    return result


def _plays_of(plan: Plan, clock: Clock) -> dict[str, Play]:
    plays = {}
    for component in plan.spouts:
        if issubclass(component.cls, ScriptedSpout):
            if len(component.tasks) > 1:
                raise TopologyError(
                    f"a script is played by one task: give {component.name!r} par=1. Given: {len(component.tasks)}"
                )
            plays[component.name] = Play(component.cls.rows, clock)
    return plays


def _run_to_the_end(run: LocalRun, plays: Mapping[str, Play]) -> None:
    run.unread.look()
    ranges = run.unread.next_ranges()
    while run.micro_batches == 0 or ranges or not all(play.done for play in plays.values()):
        for play in plays.values():
            play.begin()
        run.round(ranges, deadline=float("inf"))
        ranges = run.unread.next_ranges()


def _still_running(run: LocalRun) -> str:
    if run.worker is None:
        return "it has not begun"
    parts = []
    for executor in run.worker.executors:
        queue = getattr(executor, "queue", None)
        if queue is not None and len(queue):
            parts.append(
                f"{executor.component!r} has {_counted(len(queue), 'tuple')} waiting, {executor.executed} done"
            )
        elif queue is None and not executor.exhausted:  # type: ignore[attr-defined]
            parts.append(f"spout {executor.component!r} has not ended, {_counted(executor.executed, 'call')} done")
    return ", ".join(parts) or "tuples were under way"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"
