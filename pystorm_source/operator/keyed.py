"""A stage whose bolt keeps states: on Spark's ``transformWithState``, exactly once with the checkpoint.

::

    rows ──► packed ──► groupBy(bucket) ──► one call for each bucket ──► worker: Inputs ──► StatefulBolt ──► unpacked
                                               │                                              │
                                               └── MapState: key → values ◀── KeyedStates ◀───┘
                                                   MapState: second → keys whose timers may be due

Without buckets, Spark would call once for each key, and change the key by a round trip each time. In a bucket the
states of many keys are one map: a key costs a get and a put, however many tuples it has. Timers work the same way:
Spark has one for each second that keys of the bucket have set theirs for, and its call runs the stage over these keys.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from pystorm_source.api.key_state import TIMERS, Key, StateShape
from pystorm_source.api.keyed_states import KeyedStates
from pystorm_source.channel.leases.task_lessor import lease
from pystorm_source.errors import OptionError
from pystorm_source.operator.packed_rows import PACKED, PACKED_OUTPUT, PACKED_ROWS, Pack, Unpack, pack, unpack
from pystorm_source.operator.state_needs import provide_states
from pystorm_source.operator.task import OperatorPlan
from pystorm_source.plan import ComponentPlan, Plan
from pystorm_source.plan.key_states import TIMER_INPUT, key_columns, needs_time, state_columns, state_shape
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spark.dead_letter_file import letters_kept
from pystorm_source.spark.input_feed import fed, place_of_task
from pystorm_source.spark.interned import interned, pickled_with
from pystorm_source.spark.task_cores import advise_of_cores
from pystorm_source.spark.versions import map_in_arrow, states_take_rows, transform_with_state
from pystorm_source.stages.crossing import AT, Crossing
from pystorm_source.stages.entry_feeds import EntryColumns
from pystorm_source.worker import warm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A bolt's variable has no hyphen.
_BUCKETS = "key-buckets"
_TIMERS = "key-timers"
# The part that has the number of parts.
_HEAD = -1

MOST_KEYS = 10_000
"""Most keys of several times that one run of a stage gets. More: memory. Fewer: a run for each second that a query was
stopped."""


@dataclass(frozen=True)
class KeyedPlan:
    """What travels into each task. ``entries``: in the order of their numbers; ``rows``: Arrow's schema of what is
    packed. ``variable``: the state's name in Spark; ``key``, ``values``: its schemas. ``ttl_millis``: None if states
    do not expire."""

    operator: OperatorPlan
    entries: tuple[EntryColumns, ...]
    rows: pa.Schema
    shape: StateShape
    variable: str
    key: StructType
    values: StructType
    ttl_millis: int | None
    buckets: int


def keyed(df: "DataFrame", crossing: Crossing, operator: OperatorPlan, schema: StructType) -> "DataFrame":
    """Returns the rows of a stage with a StatefulBolt. ``df``: the rows of the stage before.

    Raises OptionError if this Spark cannot keep states, TopologyError for a component that does
    not pickle.
    """
    from pyspark.sql import functions as F

    plan = crossing.stage.plan
    bolt: Any = crossing.stage.stateful
    provide_states(df)
    buckets = plan.options.state_buckets
    placed = crossing.placed(df)
    bucketed = placed.withColumn(AT, F.pmod(F.col(AT), F.lit(buckets)))
    made = _keyed_plan(crossing, replace(operator, entries=()), bolt, plan, buckets)
    packed = map_in_arrow(bucketed, Pack(tuple((field.name, field.type) for field in made.rows)), PACKED_ROWS)
    mode = "ProcessingTime" if needs_time(bolt) else "None"
    found = transform_with_state(packed, AT, KeyedProcessor(pickled_with(plan, made)), PACKED_OUTPUT, mode)
    return map_in_arrow(found, Unpack(made.operator.output.schema), schema)


def _keyed_plan(crossing: Crossing, operator: OperatorPlan, bolt: ComponentPlan, plan: Plan, buckets: int) -> KeyedPlan:
    ttl = bolt.cls.state_ttl_secs  # type: ignore[attr-defined]
    return KeyedPlan(
        operator,
        crossing.entries(),
        crossing.arrow_schema(),
        state_shape(plan, bolt),
        "".join(letter if letter.isalnum() else "_" for letter in bolt.name),
        _struct(key_columns(plan, bolt.name), f"the key of {bolt.name!r}"),
        _struct(state_columns(bolt), f"the state of {bolt.name!r}"),
        None if ttl is None else max(1, int(ttl * 1000)),
        buckets,
    )


def _struct(columns: Iterable[tuple[str, str]], of: str) -> StructType:
    return StructType([StructField(name, parse_type(ddl, f"field {name!r} of {of}")[0], True) for name, ddl in columns])


class KeyedProcessor(StatefulProcessor):
    """Called by Spark for each bucket. ``made``: a pickled KeyedPlan."""

    def __init__(self, made: bytes):
        self._made = made

    def init(self, handle: Any) -> None:
        """Declares the states: the map from keys to values, the number of buckets, and which keys are asked for at
        which time."""
        plan: KeyedPlan = interned(self._made)
        kept = handle.getMapState(plan.variable, plan.key, plan.values, plan.ttl_millis)
        self._buckets = handle.getValueState(_BUCKETS, StructType([StructField("n", IntegerType(), True)]))
        timers = None
        if plan.shape.has_timers:
            part = StructType([StructField("at", LongType(), True), StructField("part", IntegerType(), True)])
            parts = StructField("parts", IntegerType(), True)
            keys = StructType([parts, StructField("keys", ArrayType(plan.key), True)])
            timers = handle.getMapState(_TIMERS, part, keys)
        self._kept = _Kept(kept, timers, handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """The rows of a bucket."""
        with spark_border():
            plan: KeyedPlan = interned(self._made)
            self._check_buckets(plan.buckets)
            yield from _rows(plan, self._kept, _feeds(plan, rows), timerValues.getCurrentProcessingTimeInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        """The keys of a bucket that have set a timer for that time."""
        with spark_border():
            plan: KeyedPlan = interned(self._made)
            now = timerValues.getCurrentProcessingTimeInMs()
            asked = self._kept.asked_until(expiredTimerInfo.getExpiryTimeInMs(), now)
            due = list(dict.fromkeys((plan.shape.key_of(key), at) for key, at in asked))
            if due:
                self._check_buckets(plan.buckets)
                yield from _rows(plan, self._kept, {TIMER_INPUT: _Once([_timer_batch(plan.shape, due)])}, now)

    def close(self) -> None:
        """Nothing is kept open."""

    def _check_buckets(self, buckets: int) -> None:
        """Raises OptionError if the checkpoint has another number of buckets: a key would be looked for elsewhere."""
        before = self._buckets.get()
        if before is None:
            self._buckets.update((buckets,))
        elif before[0] != buckets:
            raise OptionError(
                f"the checkpoint has the states in {before[0]} buckets, and the number is fixed with its first "
                f"micro-batch: set topology.state.buckets={before[0]}, or begin with a new checkpoint. Given: "
                f"topology.state.buckets={buckets}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )


class _Kept:
    """Spark's states of the bucket that it processes. Its connection takes one question at a time, and tasks of a bolt
    may run in separate threads. ``timers``: None for a bolt without timers."""

    def __init__(self, states: Any, timers: Any, handle: Any):
        self._states = states
        self._timers = timers
        self._handle = handle
        self._lock = Lock()

    def get(self, key: Key) -> tuple[Any, ...] | None:
        """As ``StateStore``."""
        with self._lock:
            found: tuple[Any, ...] | None = self._states.getValue(key)
            return found

    def put(self, key: Key, values: tuple[Any, ...]) -> None:
        """As ``StateStore``."""
        with self._lock:
            self._states.updateValue(key, values)

    def remove(self, key: Key) -> None:
        """As ``StateStore``."""
        with self._lock:
            self._states.removeKey(key)

    def ask_at(self, millis: int, keys: list[Key]) -> None:
        """As ``StateStore``: Spark calls the bucket at that time.

        The keys of each flush are a separate part: many micro-batches may ask for one time, such as midnight, and none
        rewrites what the others wrote.
        """
        with self._lock:
            head = self._timers.getValue((millis, _HEAD))
            parts = 0 if head is None else head[0]
            if parts == 0:
                self._handle.registerTimer(millis)
            self._timers.updateValue((millis, parts), (None, keys))
            self._timers.updateValue((millis, _HEAD), (parts + 1, None))

    def asked_until(self, millis: int, now: int) -> list[tuple[Any, int]]:
        """Removes and returns the keys to be asked for at that time, in Spark's form, with the time; then the next
        times' up to ``now``, as long as they are few: a query that starts after a long stop runs once for many."""
        with self._lock:
            found = self._taken(millis)
            if found:
                for at in sorted(self._handle.listTimers()):
                    if len(found) >= MOST_KEYS or at > now:
                        break
                    found += self._taken(at)
            return found

    def _taken(self, millis: int) -> list[tuple[Any, int]]:
        head = self._timers.getValue((millis, _HEAD))
        if head is None:
            return []
        found: list[tuple[Any, int]] = []
        for part in range(head[0]):
            found += [(key, millis) for key in self._timers.getValue((millis, part))[1]]
            self._timers.removeKey((millis, part))
        self._timers.removeKey((millis, _HEAD))
        return found


class _Once:
    """A feed of batches that are already there."""

    def __init__(self, batches: Iterable[pa.RecordBatch]):
        # A batch without rows says that there are no rows yet.
        self._batches = iter([batch for batch in batches if batch.num_rows > 0])

    def take(self) -> pa.RecordBatch | None:
        """As ``ReadAhead.take``."""
        return next(self._batches, None)


class _NoReader:
    """Reads nothing ahead: the rows of a bucket are already there."""

    def start(self) -> None:
        """As ``Reader``."""

    def close(self) -> None:
        """As ``Reader``."""


def _rows(plan: KeyedPlan, kept: _Kept, feeds: "dict[str, _Once]", now: int) -> Iterator[Any]:
    operator = plan.operator
    place = place_of_task(operator.plan.name, operator.applied, operator.batch_id)
    with (
        warm.borrowed(operator.plan, operator.output, place.run) as worker,
        letters_kept(worker, operator.letters, operator.applied),
    ):
        lease(worker, place.run, operator.permits_from)
        advise_of_cores(worker.plan)
        states = KeyedStates.of(worker.executors, plan.shape, kept, now)
        with fed(worker, feeds, place, _NoReader()) as batches:
            for batch in batches:
                if batch.num_rows:
                    yield _of_spark(pack(batch))
        # Order: when all tuples are processed. An error before that leaves Spark's store as it was.
        for each in states:
            each.flush()


def _feeds(plan: KeyedPlan, rows: Iterator[Any]) -> "dict[str, _Once]":
    """Input → its rows of the bucket."""
    batches = [unpack(value, plan.rows) for value in _values(rows)]
    if len(plan.entries) == 1:
        return {plan.entries[0].name: _Once(map(plan.entries[0].of, batches))}
    found: dict[str, list[pa.RecordBatch]] = {entry.name: [] for entry in plan.entries}
    for batch in batches:
        for number, entry in enumerate(plan.entries):
            found[entry.name].append(entry.of(batch.filter(pc.equal(batch.column(0), number))))
    return {name: _Once(batches) for name, batches in found.items()}


_ROW = Row(PACKED)


def _values(rows: Iterator[Any]) -> Iterator[bytes]:
    """The packed values in what Spark gives."""
    if states_take_rows():
        return (row[PACKED] for row in rows)
    return (value for frame in rows for value in frame[PACKED])


def _of_spark(value: bytes) -> Any:
    """A packed value as Spark takes it."""
    if states_take_rows():
        return _ROW(value)
    import pandas  # type: ignore[import-untyped]

    return pandas.DataFrame({PACKED: [value]})


def _timer_batch(shape: StateShape, due: list[tuple[Key, int]]) -> pa.RecordBatch:
    columns = zip(*(key for key, _ in due), strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, shape.key_types, strict=True)]
    arrays.append(pa.array([at for _, at in due], pa.int64()))
    return pa.RecordBatch.from_arrays(arrays, names=[*shape.key_names, TIMERS[1]])
