"""The laws of bolts, and ``verify_bolt``, which runs one over the same rows in many ways, after Jet's ``TestSupport``.

all rows at once ──► the reference
a fresh instance for each tuple · the task killed after each · each failing once · two micro-batches ·
one tuple at a time, all at once · queues of two · a thread for each executor · an Arrow bolt's rows
in batches of one, of some  ──► the same rows
"""

import copy
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NoReturn

from pystorm_source.api import ArrowBolt, AsyncBolt, BatchingBolt, Bolt, ComponentSpec, GlobalStreamId, Stream, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ArgumentError, ContractBroken, TopologyError, TupleFailed, given
from pystorm_source.testing.law import (
    LATE,
    LATE_REMEDY,
    RETURNS,
    RETURNS_REMEDY,
    Law,
    TimeLimit,
    broken,
    check_pickles,
    difference,
    key_of,
    law_of,
    law_of_error,
    raised,
)
from pystorm_source.testing.result import Result
from pystorm_source.testing.run import run_watched
from pystorm_source.testing.script import ABORT, EOF, FAIL, ON, PAUSE, ScriptedSpout
from pystorm_source.user_frames import trim
from pystorm_source.worker import Worker

MOST_TURNS = 50
"""Tuples that are killed, or fail, in turn: of more rows as many, evenly spread. Fewer: a fault that one tuple alone
shows is missed. More: the check takes longer, by the square of the rows."""
THREAD_SECONDS = 1.0
"""How long threads that a bolt has left are waited for. Less: their late emits are missed. More: the check takes that
long if a thread never ends."""

PAUSE_SECONDS = 1e-6
"""Of the engine's clock, before a task is killed. More: ticks come, and a bolt emits earlier."""

CUTS = (1, 2, 7)
"""Rows of the batches that an Arrow bolt gets at most, besides all at once."""

State = Literal["none", "micro-batch", "instance"]
LAWS: list[Law] = []
"""In the order in which they are tried: the first that is broken is the most telling one."""


def verify_bolt(
    bolt: type[Bolt] | ComponentSpec,
    rows: Sequence[list[Any] | tuple[Any, ...] | ON],
    config: Mapping[str, Any] | None = None,
    *,
    fields: Sequence[str | Stream] | None = None,
    state: State | None = None,
    timeout: float = 60.0,
) -> None:
    """Runs a bolt over the rows in one go, and then in every way in which Spark or the engine may; returns if it always
    emits the same rows.

    The commonest mistake that it finds is state in ``self``. One task of the bolt is run, with its own config.

    Args:
        bolt (type[Bolt] | ComponentSpec): the class, or its spec.
        rows (list): values of the tuples that it gets, a few dozen; ``ON(stream, values)`` for other streams than the
            default one.
        config (Mapping[str, Any]): configuration of the topology. Defaults to None.
        fields (list[str | Stream]): what the rows' spout declares, as its ``outputs``. Defaults to those of the stream
            that the spec subscribes to.
        state (str): "none": what it emits depends on the tuple alone. "micro-batch": it gathers tuples and emits until
            the final tick, after which nothing is left. "instance": it may keep anything, and its loss with the
            process is meant. Defaults to None: "micro-batch" for a BatchingBolt, "none" for others.
        timeout (float): seconds of the machine's clock for all runs together. Defaults to 60.0.

    Raises:
        ContractBroken: a law is broken; names law, tuple, what was expected and found, and the remedy.
        TupleFailed: the bolt raised although it was run over the rows in one go; its cause is the bolt's own exception.
        TopologyError: it is no bolt, or the fields of its rows are unknown.
        ArgumentError: ``state`` is none of these, or there are no rows.

    Example:
        >>> from pystorm_source.testing import verify_bolt
        >>> class Split(Bolt):
        ...     outputs = ["word string"]
        ...     def process(self, tup):
        ...         for word in tup.values.line.split():
        ...             self.emit([word])
        >>> verify_bolt(Split, [["the cow"], [""], ["the moon"]], fields=["line string"])
    """
    __tracebackhide__ = True  # for pytest: the frames of the component tell more
    spec = _spec_of(bolt)
    if state is None:
        state = "micro-batch" if issubclass(spec.component_cls, BatchingBolt) else "none"
    if state not in ("none", "micro-batch", "instance"):
        raise ArgumentError(
            f"state is 'none', 'micro-batch' or 'instance'. Given: {given(state)}", code="PYSTORM_INVALID_ARGUMENT"
        )
    if not rows:
        raise ArgumentError(
            f"verify_bolt needs some rows, or it finds nothing. Given: {given(rows)}", code="PYSTORM_INVALID_ARGUMENT"
        )
    with TimeLimit(spec.component_cls.__name__, timeout) as limit:
        trial = BoltTrial(spec, list(rows), list(fields or _fields_of(spec)), dict(config or {}), state, limit)
        for law in LAWS:
            limit.call(partial(trial.judge, law))


def _spec_of(bolt: Any) -> ComponentSpec:
    spec = bolt.spec() if isinstance(bolt, type) and issubclass(bolt, Bolt) else bolt
    if not isinstance(spec, ComponentSpec) or not issubclass(spec.component_cls, Bolt):
        raise TopologyError(
            f"verify_bolt takes a Bolt: the class or its spec. Given: {given(bolt)}", code="PYSTORM_INVALID_TEST"
        )
    return spec


def _fields_of(spec: ComponentSpec) -> list[Stream]:
    """Those of the first component that it subscribes to."""
    sources = [source.component for source, _ in spec.subscriptions if isinstance(source.component, ComponentSpec)]
    if not sources:
        raise TopologyError(
            "verify_bolt needs the fields of the rows: fields=['line string'], or a spec whose inputs are specs. "
            f"Given: {spec!r}",
            code="PYSTORM_INVALID_TEST",
        )
    return list(sources[0].streams)


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
        """The rows as the bolt behind got them."""
        return {name: self.result.rows("behind", name) for name in self.rows}


class BoltTrial:
    """One bolt, its rows, and the run of reference."""

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
        self.given: list[Any] = []  # to the run of reference
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
        """Raises ContractBroken for a wrong emit and for what the bolt raises; TupleFailed if it raises in the run of
        reference.

        ``waits``: for threads that the bolt has left. ``config``: with ``_`` for ``.``.
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
        """The rows of the reference, so many times."""
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
        """Numbers of the rows that take turns, in order."""
        step = max(1, -(-len(self.rows) // MOST_TURNS))
        return list(range(0, len(self.rows), step))


def copied(rows: Sequence[Any]) -> list[Any]:
    """A run changes nothing in the rows of another one."""
    try:
        return copy.deepcopy(list(rows))
    except Exception:  # values that do not copy are shared
        return list(rows)


def missing(expected: Sequence[Any], found: Sequence[Any]) -> tuple[str, str] | None:
    """What was expected and what was found if these are not the same rows, in any order."""
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
    """Threads that a bolt has left may still emit."""
    clock = SystemClock()
    end = clock.monotonic() + THREAD_SECONDS
    for thread in threads:
        if not thread.name.startswith("asyncio_"):  # an event loop's, which wait for ever
            thread.join(max(0.0, end - clock.monotonic()))


def row_place(rows: Sequence[Any], number: int) -> str:
    return f"tuple {number + 1} of {len(rows)}, {given(rows[number])}"


@law_of(
    LAWS,
    "the class pickles",
    "Open connections, locks and files in initialize(), not in the class, its module or a closure",
)
def _check_pickles(trial: BoltTrial) -> None:
    assert trial._law is not None
    check_pickles(trial.cls, trial._law.remedy)


@law_of(
    LAWS,
    "a bolt does not change its input",
    "Values are shared with all receivers and emitted again if the tuple fails: copy what you change",
)
def _check_input(trial: BoltTrial) -> None:
    trial.given = copied(trial.rows)
    trial.reference = trial.run(trial.given, waits=True)
    for number, (before, after) in enumerate(zip(trial.rows, trial.given, strict=True)):
        if key_of(getattr(before, "values", before)) != key_of(getattr(after, "values", after)):
            trial.broken(row_place(trial.rows, number), f"values {given(before)} afterwards", given(after))


@law_of(
    LAWS,
    "every tuple gets a verdict",
    "With auto_ack = False call ack(tup) or fail(tup) once for every tuple, also for those that give no row",
)
def _check_verdicts(trial: BoltTrial) -> None:
    source = trial._names[1]
    forgotten = trial.reference.result.unsettled[source]
    if forgotten:
        trial.broken(
            "", f"ack or fail of all {len(trial.rows)} tuples before the micro-batch ends", f"{forgotten} of neither"
        )


@law_of(LAWS, LATE, LATE_REMEDY)
def _check_late(trial: BoltTrial) -> None:
    if trial.reference.late:
        trial.broken("", "every emit before the run has ended", "an emit of a thread of its own after cleanup()")


@law_of(
    LAWS,
    "values stay as they were emitted",
    "Receivers get the very objects: emit a copy of a list or dict that you go on changing",
)
def _check_output(trial: BoltTrial) -> None:
    streams = trial.spec.streams
    if not streams or any(stream.direct for stream in streams):
        return
    try:
        ran = trial.run(copied(trial.rows), "", behind=True, testing_always_try_serialize=True)
    except ContractBroken as error:
        if "always.try.serialize" in error.found:
            return  # values that do not copy
        raise
    for name, rows in ran.received.items():
        differs = missing(rows, ran.rows[name])
        if differs is not None:
            trial.broken(f"stream {name!r}", *differs)


@law_of(
    LAWS,
    "the same tuples give the same rows again",
    "Make rows of the tuples and the configuration alone: no clock, no random numbers, and no state outside of the "
    "instance, such as a dict or list in the class body or the module",
)
def _check_again(trial: BoltTrial) -> None:
    trial.compare(trial.run(copied(trial.rows)), "another run")


@law_of(
    LAWS,
    "any cut of the rows into batches gives the same rows",
    "Which rows come in one batch is the engine's choice: what process_batch() emits for a row must not depend on the "
    "others of its batch, such as on their number, sum or order",
)
def _check_cuts(trial: BoltTrial) -> None:
    if trial.state != "none" or not issubclass(trial.cls, ArrowBolt):
        return
    for rows in CUTS:
        trial.compare(trial.run(copied(trial.rows), max_spout_pending=rows), f"batches of at most {rows} rows")


STATE_IN_SELF = (
    "It keeps state in self from one tuple to the next. Spark may give any tuple to a fresh instance, and what an "
    "instance keeps is lost with its process. Emit what each tuple adds, and let Spark sum it up. If the state is of "
    "one micro-batch and is emitted at its final tick, say state='micro-batch'; if its loss is meant, as of a cache or "
    "a running count, say state='instance'"
)


@law_of(LAWS, "a fresh instance gives the same rows", STATE_IN_SELF)
def _check_fresh(trial: BoltTrial) -> None:
    if trial.state != "none":
        return
    at = dict.fromkeys(trial.reference.rows, 0)
    for number, row in enumerate(trial.rows):
        place = row_place(trial.rows, number)
        ran = trial.run(copied([row]), place)
        trial.solo.append(ran)
        for name, rows in ran.rows.items() if trial.ordered else ():
            wanted = trial.reference.rows[name][at[name] : at[name] + len(rows)]
            at[name] += len(rows)
            differs = difference(wanted, rows)
            if differs is not None:
                trial.broken(f"{place}, in an instance of its own, against all tuples in one", *differs)
    whole = {name: [row for ran in trial.solo for row in ran.rows[name]] for name in trial.reference.rows}
    trial.compare_rows(trial.reference.rows, whole, "each tuple in an instance of its own, against all in one")


@law_of(
    LAWS,
    "a killed task leaves nothing behind",
    "Nothing may outlive an instance: neither what is in the class or the module, nor files that its rows depend on",
)
def _check_killed(trial: BoltTrial) -> None:
    for number in trial.turns():
        rows = copied(trial.rows)
        # Order: in the pause all that came before it passes through the bolt.
        ran = trial.run([*rows[: number + 1], PAUSE(PAUSE_SECONDS), ABORT, *rows[number + 1 :]])
        trial.compare(ran, f"{row_place(trial.rows, number)}, where the task was killed and started again")


@law_of(
    LAWS,
    "a tuple that fails gives its rows once more",
    "It comes again, to the same instance: keep nothing in self by which its second coming differs",
)
def _check_replayed(trial: BoltTrial) -> None:
    if trial.state != "none":
        return
    source = trial._names[1]
    for number in trial.turns():
        solo = trial.solo[number]
        if solo.result.failed[source]:
            continue  # the bolt fails it by itself
        rows = copied(trial.rows)
        ran = trial.run([*rows[: number + 1], FAIL, *rows[number + 1 :]])
        for name, wanted in trial.reference.rows.items():
            differs = missing([*wanted, *solo.rows[name]], ran.rows[name])
            if differs is not None:
                place = f"{row_place(trial.rows, number)}, which failed once"
                trial.broken(place if name == "default" else f"{place}, stream {name!r}", *differs)


@law_of(
    LAWS,
    "a micro-batch begins with nothing kept",
    "Emit and clear at the final tick what process() has gathered: `if self.is_final_tick(tup)`, or at every tick. The "
    "instance stays for the next micro-batch, or is lost before it",
)
def _check_two(trial: BoltTrial) -> None:
    if trial.state != "instance":
        ran = trial.run([*copied(trial.rows), EOF, *copied(trial.rows)])
        trial.compare(ran, "two micro-batches of the same tuples, in the same instance", times=2)


SAME_ANYHOW = "How many tuples wait, and which thread runs the bolt, is the engine's choice: rows must not depend on it"


@law_of(LAWS, "one tuple at a time or all at once, the rows are the same", SAME_ANYHOW)
def _check_inbox(trial: BoltTrial) -> None:
    if trial.state == "none":
        trial.compare(trial.run(copied(trial.rows), max_spout_pending=1), "an inbox of one tuple")
    size = max(4, 2 * len(trial.rows))
    sizes: dict[str, Any] = {"executor_receive_buffer_size": size, "producer_batch_size": size // 2}
    trial.compare(trial.run(copied(trial.rows), **sizes), "an inbox of all tuples")


@law_of(LAWS, "queues that are full change no row", SAME_ANYHOW)
def _check_capacity(trial: BoltTrial) -> None:
    behind = bool(trial.spec.streams) and not any(stream.direct for stream in trial.spec.streams)
    sizes: dict[str, Any] = {"executor_receive_buffer_size": 2, "producer_batch_size": 1}
    ran = trial.run(copied(trial.rows), "", behind=behind, **sizes)
    trial.compare(ran, "queues of two tuples")
    if behind:
        trial.compare_rows(trial.reference.rows, ran.received, "the bolt behind queues of two tuples")


@law_of(LAWS, "both schedulers give the same rows", SAME_ANYHOW)
def _check_threads(trial: BoltTrial) -> None:
    trial.compare(trial.run(copied(trial.rows), scheduler="threads"), "topology.scheduler=threads")
