"""One bolt on trial: its rows, the reference run, and how to compare the rows of two runs."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

from pystorm_source.api import AsyncBolt, Bolt, ComponentSpec, GlobalStreamId, Stream, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import TupleFailed, given
from pystorm_source.errors.user_frames import trim
from pystorm_source.testing.law import (
    RETURNS,
    RETURNS_REMEDY,
    Law,
    TimeLimit,
    broken,
    difference,
    key_of,
    law_of_error,
    raised,
)
from pystorm_source.testing.result import Result
from pystorm_source.testing.run import run_watched
from pystorm_source.testing.script import ScriptedSpout
from pystorm_source.worker import Worker

MOST_TURNS = 50
"""Tuples that are killed, or fail, in turn; evenly spread over the rows. Fewer: misses a fault that only one tuple
shows. More: the check takes longer, by the square of the rows."""

THREAD_SECONDS = 1.0
"""How long to wait for threads that a bolt has left running. Less: misses their late emits. More: the check takes that
long if a thread never ends."""
State = Literal["none", "micro-batch", "instance"]


class Behind(Bolt):
    """Emits what it gets, on a stream of the same name."""

    def process(self, tup: Any) -> None:
        self.emit(tup.values, stream=tup.stream)


class Ran:
    """A run: its rows by stream, and whether anything was emitted too late."""

    def __init__(self, result: Result, names: tuple[str, str], streams: Sequence[Stream], late: bool):
        self.result = result
        self.bolt, self.source = names
        self.late = late
        self.rows = {stream.name: result.rows(self.bolt, stream.name) for stream in streams}

    @property
    def received(self) -> dict[str, list[tuple[Any, ...]]]:
        """The rows that the bolt behind got."""
        return {name: self.result.rows("behind", name) for name in self.rows}


class BoltTrial:
    """One bolt, its rows, and the reference run."""

    def __init__(
        self,
        spec: ComponentSpec,
        rows: list[Any],
        fields: list[Any],
        config: dict[str, Any],
        state: State,
        limit: TimeLimit,
    ):
        self.spec = spec
        self.cls = spec.component_cls
        self.rows = rows
        self.state = state
        self._fields = fields
        self._config = {"topology.dead.letter": "drop", **config}
        self._limit = limit
        sources = [source.componentId for source, _ in spec.subscriptions]
        self._names = (spec.name or "bolt", next(iter(sources), "rows"))
        self._law: Law | None = None
        self.reference: Ran
        self.given: list[Any] = []  # to the reference run
        self.ordered = not issubclass(self.cls, AsyncBolt)
        self.solo: list[Ran] = []  # a run for each row

    def judge(self, law: Law) -> None:
        """Raises ContractBroken if the bolt breaks this law."""
        self._law = law
        law.check(self)

    def broken(self, place: str, expected: str, found: str, remedy: str = "") -> NoReturn:
        assert self._law is not None
        raise broken(self.cls.__name__, self._law.says, place, expected, found, remedy or self._law.remedy)

    def run(
        self, script: Sequence[Any], place: str = "", behind: bool = False, waits: bool = False, **config: Any
    ) -> Ran:
        """Raises ContractBroken for a wrong emit and if the bolt raises; TupleFailed if it raises in the reference run.

        ``waits``: for threads that the bolt has left running. ``config``: with ``_`` for ``.``.
        """
        bolt, source = self._names
        rows = ScriptedSpout.of(self._fields, *script).spec(name=source)
        inputs = [GlobalStreamId(source, stream.name) for stream in rows.streams]
        spec = ComponentSpec(self.cls, name=bolt, inputs=inputs, par=1, config=self.spec.config)
        body: dict[str, Any] = {"rows_": rows, "bolt_": spec}
        if behind:
            outputs = [Stream(list(each.fields), each.name) for each in spec.streams]
            made: Any = type("Behind", (Behind,), {"outputs": outputs})
            body["behind_"] = made.spec(name="behind", inputs=[spec[each.name] for each in spec.streams])
        topology = type("Verified", (Topology,), body)
        keys = {f"topology.{key.replace('_', '.')}": value for key, value in config.items()}
        instances: list[Any] = []

        def keep(worker: Worker) -> None:
            instances.extend(each.instance for each in worker.executors if each.component == bolt)

        before = set(threading.enumerate())
        try:
            result = run_watched(topology, {**self._config, **keys}, timeout=self._limit.left(), on_worker=keep)
        except TupleFailed as error:
            self._refuse(error, place)
        except TimeoutError as error:
            found = str(error).partition(": ")[2].partition(". ")[0]
            expected = "an end of the run"
            raise broken(self.cls.__name__, RETURNS, place, expected, found, RETURNS_REMEDY) from None
        for each in result.errors:
            if law_of_error(each) is not None:
                self._refuse(each, place)
        if waits:
            wait_for(set(threading.enumerate()) - before)
        late = any(getattr(instance, "_pystorm_late_emit_reported", False) for instance in instances)
        return Ran(result, self._names, spec.streams, late)

    def _refuse(self, error: Exception, place: str) -> NoReturn:
        assert self._law is not None
        cause = error.__cause__ or error
        law = law_of_error(error)
        if law is None and not hasattr(self, "reference"):
            raise error
        says, remedy = law or (self._law.says, self._law.remedy)
        where = str(error).partition("; tuple ")[2]
        place = place or (f"tuple {where}" if where else "")
        raise broken(self.cls.__name__, says, place, "no exception", raised(cause), remedy) from trim(cause)

    def compare(self, found: Ran, place: str, times: int = 1) -> None:
        """Compares with the reference rows, repeated so many times."""
        expected = {name: rows * times for name, rows in self.reference.rows.items()}
        self.compare_rows(expected, found.rows, place)

    def compare_rows(self, expected: Mapping[str, Any], found: Mapping[str, Any], place: str) -> None:
        for stream, rows in expected.items():
            where = place if stream == "default" else f"{place}, stream {stream!r}"
            differs = missing(rows, found[stream])
            if differs is None and self.ordered:
                differs = difference(rows, found[stream])
            if differs is not None:
                self.broken(where, *differs)

    def turns(self) -> list[int]:
        """Returns the numbers of the rows that take turns, in order."""
        step = max(1, -(-len(self.rows) // MOST_TURNS))
        return list(range(0, len(self.rows), step))


def missing(expected: Sequence[Any], found: Sequence[Any]) -> tuple[str, str] | None:
    """Returns what was expected and found if the rows differ, ignoring order; otherwise None."""
    one, other = Counter(map(key_of, expected)), Counter(map(key_of, found))
    if one == other:
        return None
    lacking, strange = one - other, other - one
    text = [given(next(row for row in rows if key_of(row) in keys)) for rows, keys in _nonempty(expected, lacking)]
    more = [given(next(row for row in rows if key_of(row) in keys)) for rows, keys in _nonempty(found, strange)]
    return (
        f"{len(expected)} rows{f', among them {text[0]}' if text else ''}",
        f"{len(found)} rows{f', among them {more[0]}' if more else ''}",
    )


def _nonempty(rows: Sequence[Any], keys: Counter[Any]) -> list[tuple[Sequence[Any], Counter[Any]]]:
    return [(rows, keys)] if keys else []


def wait_for(threads: set[threading.Thread]) -> None:
    """Waits for threads that a bolt has left running, which may still emit."""
    clock = SystemClock()
    end = clock.monotonic() + THREAD_SECONDS
    for thread in threads:
        if not thread.name.startswith("asyncio_"):  # an event loop's never end
            thread.join(max(0.0, end - clock.monotonic()))
