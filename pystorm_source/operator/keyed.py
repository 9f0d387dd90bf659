"""A stage whose bolt keeps states: on Spark's ``transformWithState``, exactly once with the checkpoint.

::

    rows ──► groupBy(bucket of the key) ──► one call for each bucket ──► worker: Inputs ──► StatefulBolt ──► rows
                                               │                                              │
                                               └── MapState: key → values ◀── KeyedStates ◀───┘

Spark would call once for each key, and change the key by a round trip each time. In a bucket the states of many keys
are one map: a key costs a get and a put, however many tuples it has.
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import IntegerType, StructField, StructType

from pystorm_source.api.stateful_bolt import KeyedStates
from pystorm_source.errors import NotSupportedError, OptionError
from pystorm_source.operator.task import OperatorPlan
from pystorm_source.plan import ComponentPlan, Plan
from pystorm_source.plan.stages import key_positions, state_stream, state_types
from pystorm_source.source.ddl import parse_type
from pystorm_source.source.interned import interned, pickled_with
from pystorm_source.source.leases.task_lessor import lease
from pystorm_source.source.spark_border import spark_border
from pystorm_source.source.spark_versions import keeps_states, transform_with_state
from pystorm_source.source.task.dead_letter_file import letters_kept
from pystorm_source.source.task.input_feed import fed, place_of_task
from pystorm_source.stages.crossing import AT, TO, Crossing
from pystorm_source.stages.entry_feeds import EntryColumns
from pystorm_source.worker import warm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_BUCKETS = "buckets"


@dataclass(frozen=True)
class KeyedPlan:
    """What travels into each task. ``entries``: in the order of their numbers; ``columns``: the names in rows of what
    each takes. ``variable``: the state's name in Spark. ``key``, ``values``: its schemas; ``types``:
    Arrow's of the values. ``ttl_millis``: None for
    none."""

    operator: OperatorPlan
    entries: tuple[EntryColumns, ...]
    columns: tuple[tuple[str, ...], ...]
    bolt: str
    variable: str
    key: StructType
    values: StructType
    types: tuple[pa.DataType, ...]
    ttl_millis: int | None
    buckets: int


def keyed(df: "DataFrame", crossing: Crossing, operator: OperatorPlan, schema: StructType) -> "DataFrame":
    """The rows of a stage with a StatefulBolt. ``df``: those of the stage before.

    Raises NotSupportedError or OptionError if this Spark cannot keep states, TopologyError for a component that does
    not pickle.
    """
    from pyspark.sql import functions as F

    plan = crossing.stage.plan
    bolt: Any = crossing.stage.stateful
    _refuse_without_states(df)
    buckets = plan.options.state_buckets
    placed = crossing.placed(df)
    bucketed = placed.withColumn(AT, F.pmod(F.col(AT), F.lit(buckets)))
    made = _keyed_plan(crossing, replace(operator, entries=()), bolt, plan, buckets)
    mode = "None" if made.ttl_millis is None else "ProcessingTime"
    return transform_with_state(bucketed, AT, KeyedProcessor(pickled_with(plan, made)), schema, mode)


def _keyed_plan(crossing: Crossing, operator: OperatorPlan, bolt: ComponentPlan, plan: Plan, buckets: int) -> KeyedPlan:
    entries = crossing.entries()
    columns = tuple(tuple(crossing.columns_of(entry.name)) for entry in entries)
    fields = state_stream(bolt)
    values = [
        StructField(name, parse_type(ddl or "", f"field {name!r} of the state of {bolt.name!r}")[0], True)
        for name, ddl in zip(fields.fields, fields.types, strict=True)
    ]
    ttl = bolt.cls.state_ttl_secs  # type: ignore[attr-defined]
    return KeyedPlan(
        operator,
        entries,
        columns,
        bolt.name,
        "".join(letter if letter.isalnum() else "_" for letter in bolt.name),
        _key_schema(plan, bolt.name),
        StructType(values),
        state_types(bolt),
        None if ttl is None else max(1, int(ttl * 1000)),
        buckets,
    )


def _key_schema(plan: Plan, bolt: str) -> StructType:
    edge = next(edge for edge in plan.edges if edge.consumer == bolt)
    stream = plan.component(edge.producer).stream(edge.stream)
    return StructType(
        [
            StructField(stream.fields[place], parse_type(stream.types[place] or "", f"the key of {bolt!r}")[0], True)
            for place in edge.positions
        ]
    )


def _refuse_without_states(df: "DataFrame") -> None:
    if not keeps_states():
        raise NotSupportedError(
            "a StatefulBolt needs Spark 4.1 or later, whose transformWithState takes rows: keep the state behind the "
            f"topology by transformWithStateInPandas. Given: pyspark {pyspark.__version__}",
            code="PYSTORM_NOT_SUPPORTED",
        )
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        raise OptionError(
            "Spark's state of Python needs the package protobuf, here and where its tasks run: pip install protobuf. "
            "Given: none",
            code="PYSTORM_PACKAGE_MISSING",
        ) from None
    provider = df.sparkSession.conf.get(PROVIDER) or ""
    if df.isStreaming and "RocksDB" not in provider:
        raise OptionError(
            "Spark keeps the state of a StatefulBolt in RocksDB alone: before the query starts call "
            f"spark.conf.set({PROVIDER!r}, {ROCKS_DB!r}). Given: {provider!r}",
            code="PYSTORM_INVALID_CONFIG",
        )


class KeyedProcessor(StatefulProcessor):
    """Called by Spark for each bucket. ``made``: a pickled KeyedPlan."""

    def __init__(self, made: bytes):
        self._made = made

    def init(self, handle: Any) -> None:
        """Declares the state: the map from keys to values, and of how many buckets this one is."""
        plan: KeyedPlan = interned(self._made)
        self._kept = handle.getMapState(plan.variable, plan.key, plan.values, plan.ttl_millis)
        self._buckets = handle.getValueState(_BUCKETS, StructType([StructField("n", IntegerType(), True)]))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """The rows of a bucket."""
        with spark_border():
            plan: KeyedPlan = interned(self._made)
            self._check_buckets(plan.buckets)
            yield from _rows(plan, self._kept, rows)

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
    """Spark's MapState, of the bucket that it stands at. Its connection takes one question at a time, and tasks of a
    bolt may have threads of their own."""

    def __init__(self, states: Any):
        self._states = states
        self._lock = Lock()

    def get(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """As ``StateStore``."""
        with self._lock:
            found: tuple[Any, ...] | None = self._states.getValue(key)
            return found

    def put(self, key: tuple[Any, ...], values: tuple[Any, ...]) -> None:
        """As ``StateStore``."""
        with self._lock:
            self._states.updateValue(key, values)

    def remove(self, key: tuple[Any, ...]) -> None:
        """As ``StateStore``."""
        with self._lock:
            self._states.removeKey(key)


class _Once:
    """A feed of one batch."""

    def __init__(self, batch: pa.RecordBatch):
        self._batches = [batch] if batch.num_rows > 0 else []

    def take(self) -> pa.RecordBatch | None:
        """As ``ReadAhead.take``."""
        return self._batches.pop() if self._batches else None


class _NoReader:
    """Reads nothing ahead: the rows of a bucket are there."""

    def start(self) -> None:
        """As ``Reader``."""

    def close(self) -> None:
        """As ``Reader``."""


def _rows(plan: KeyedPlan, kept: Any, rows: Iterator[Row]) -> Iterator[Row]:
    operator = plan.operator
    place = place_of_task(operator.plan.name, operator.applied, operator.batch_id)
    store, positions = _Kept(kept), key_positions(operator.plan, plan.bolt)
    made = Row(*operator.output.schema.names)
    with (
        warm.borrowed(operator.plan, operator.output, place.run) as worker,
        letters_kept(worker, operator.letters, operator.applied),
    ):
        lease(worker, place.run, operator.permits_from)
        states = KeyedStates.of(worker.executors, plan.bolt, tuple(plan.values.names), plan.types, store, positions)
        with fed(worker, _feeds(plan, rows), place, _NoReader()) as batches:
            for batch in batches:
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield made(*values)
        # Order: when all tuples are processed. An error before that leaves Spark's store as it was.
        for each in states:
            each.flush()


def _feeds(plan: KeyedPlan, rows: Iterator[Row]) -> dict[str, _Once]:
    """Input → its rows of the bucket."""
    found: list[list[Any]] = [[] for _ in plan.entries]
    places: list[list[int]] | None = None
    number = -1
    for row in rows:
        if places is None:
            names = list(row.__fields__)
            places = [[names.index(name) for name in columns] for columns in plan.columns]
            number = names.index(TO) if TO in names else -1
        entry = row[number] if number >= 0 else 0
        found[entry].append([row[place] for place in places[entry]])
    feeds = {}
    for entry, values in zip(plan.entries, found, strict=True):
        columns = list(zip(*values, strict=True)) if values else [()] * len(entry.columns)
        arrays = [pa.array(column, kind) for column, (_, kind) in zip(columns, entry.columns, strict=True)]
        feeds[entry.name] = _Once(pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in entry.columns]))
    return feeds
