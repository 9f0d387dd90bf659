"""A stage whose bolt keeps states: on Spark's ``transformWithState``, exactly once with the checkpoint.

::

    rows ──► packed ──► groupBy(bucket) ──► one call for each bucket ──► worker: Inputs ──► StatefulBolt ──► unpacked
                                               │                                              │
                                               └── MapState: page → many keys ◀─ KeyedStates ◀┘
                                                   MapState: second → keys whose timers may be due

Without buckets, Spark would call once for each key, and change the key by a round trip each time. In a bucket the
states lie in pages (``state_pages.py``): a page costs a get and a put, however many keys and tuples it has. States that
expire have an entry of the map for each key instead, which Spark itself removes. Timers work like buckets: Spark has
one for each second that keys of the bucket have set theirs for, and its call runs the stage over these keys.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructField, StructType

from cython_core.states.states_base import TIMERS
from pystorm_source.api.key_state import Key, StateShape
from pystorm_source.api.keyed_states import KeyedStates
from pystorm_source.channel.leases.task_lessor import lease
from pystorm_source.operator.bucket_states import BucketStates
from pystorm_source.operator.packed_rows import PACKED, PACKED_OUTPUT, PACKED_ROWS, Pack, Unpack, pack, unpack
from pystorm_source.operator.state_needs import provide_states
from pystorm_source.operator.state_pages import PageForm
from pystorm_source.operator.task import OperatorPlan
from pystorm_source.plan import ComponentPlan, Plan
from pystorm_source.plan.key_states import TIMER_INPUT, key_columns, needs_time, state_columns, state_shape
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spark.dead_letter_file import letters_kept
from pystorm_source.spark.input_feed import fed, place_of_task
from pystorm_source.spark.interned import interned, pickled_with
from pystorm_source.spark.task_cores import advise_of_cores
from pystorm_source.spark.task_span import span_of_place
from pystorm_source.spark.versions import map_in_arrow, states_take_rows, transform_with_state
from pystorm_source.stages.crossing import AT, Crossing
from pystorm_source.stages.entry_feeds import EntryColumns
from pystorm_source.worker import warm
from pystorm_source.worker.tracing import flush

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        """Declares the states' variables."""
        plan: KeyedPlan = interned(self._made)
        form = PageForm(plan.shape.key_types, plan.shape.types) if plan.ttl_millis is None else None
        self._kept = BucketStates.declared(
            handle, plan.variable, plan.key, plan.values, plan.ttl_millis, form, plan.shape.has_timers
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """The rows of a bucket."""
        with spark_border(), _flushed_if_it_fails():
            plan: KeyedPlan = interned(self._made)
            yield from _rows(plan, self._kept, _feeds(plan, rows), timerValues.getCurrentProcessingTimeInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        """The keys of a bucket that have set a timer for that time."""
        with spark_border(), _flushed_if_it_fails():
            plan: KeyedPlan = interned(self._made)
            now = timerValues.getCurrentProcessingTimeInMs()
            asked = self._kept.asked_until(expiredTimerInfo.getExpiryTimeInMs(), now)
            due = list(dict.fromkeys((plan.shape.key_of(key), at) for key, at in asked))
            if due:
                yield from _rows(plan, self._kept, {TIMER_INPUT: _Once([_timer_batch(plan.shape, due)])}, now)

    def close(self) -> None:
        """The task ends."""
        flush()


@contextmanager
def _flushed_if_it_fails() -> Iterator[None]:
    """Spark calls ``close`` only after tasks that succeed."""
    try:
        yield
    except BaseException:
        flush()
        raise


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


def _rows(plan: KeyedPlan, kept: BucketStates, feeds: "dict[str, _Once]", now: int) -> Iterator[Any]:
    operator = plan.operator
    kept.begin(plan.buckets)
    place = place_of_task(operator.plan.name, operator.applied, operator.batch_id)
    with (
        warm.borrowed(operator.plan, operator.output, place.run) as worker,
        span_of_place(worker, place),
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
        kept.flush()


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
