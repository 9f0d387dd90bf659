"""Partial aggregates by key, once per micro-batch.

process_batch(batch) ──► held, as batches ──(end of the range, a tick, too many rows or bytes)──► group_by ──► emit
                                                                                          then ack what was held
a batch that comes again ───────────────────────────────────────────────────────────────► group_by ──► emit, ack
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from cython_core.executors.batching import HeldBatches
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.spec_config import spec_config
from pystorm_source.bolts.aggregation import Aggregate, Aggregation, columns_of, parsed
from pystorm_source.bolts.derived_bolt import Columns, DerivedBolt
from pystorm_source.errors import ArgumentError, ArgumentTypeError, given
from pystorm_source.types.arrow import ddl_of


class CombinerBolt(DerivedBolt):
    """Emits one row for each key and micro-batch instead of its rows: counts, sums, least and greatest values.

    Trident's combiner aggregator, Spark's partial aggregation.

    Put it last, and let Spark aggregate what it emits: ``groupBy(...).agg(sum("count"))``. Less data crosses Spark's
    shuffle, and the sums are exact: a row is acked with the row that has its sum.

    Trap: the rows are *partial*: a key has one from each task and range of the micro-batch, and one each time a bound
    is reached. Sum counts and sums, take the least ``min`` and the greatest ``max``; an average is sum / count.

    As in Spark, null is a key; sum, min and max leave nulls out, and are null if there is nothing else. A sum of ints
    is a long; a sum of floats is a double whose last digits depend on how rows were cut into batches.

    Attributes:
        by (list[str]): the key: columns of any type but list, map and struct. Defaults to (): one key for all rows.
        aggregates (dict[str, str | tuple[str, str]]): name → ``(column, function)``, one of count (values that are not
            null), sum, min and max; or ``"count"``, of rows. Defaults to {"count": "count"}.
        max_rows (int): waiting rows are combined as soon as there are this many. Defaults to 4,194,304 (2^22).
        max_bytes (int): or as soon as they have this many bytes. Defaults to 67,108,864 (64 MiB).

    Raises:
        SchemaError: by ``spec``, a column that an input does not have, or a type that is not grouped or aggregated.
        ArgumentError: by ``spec``, an unknown function, or a bound below 1.

    Example:
        >>> from pystorm_source.bolts import CombinerBolt
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Sales(Topology):
        ...     sales = MemorySpout.spec(fields=["shop string", "sold long"], rows=[["a", 1], ["b", 2], ["a", 3]])
        ...     aggregates = {"n": "count", "sold": ("sold", "sum")}
        ...     sums = CombinerBolt.spec(inputs=[sales], by=["shop"], aggregates=aggregates)
        >>> run_topology(Sales).rows("sums")
        [('a', 2, 4), ('b', 1, 2)]
    """

    by: ClassVar[Sequence[str]] = ()
    aggregates: ClassVar[Mapping[str, Any]] = {"count": "count"}
    # Larger: more memory, and a longer call at the end of the range. Smaller: more rows of the same key.
    max_rows: ClassVar[int] = 1 << 22
    max_bytes: ClassVar[int] = 64 << 20
    auto_ack = False

    @classmethod
    def spec(  # type: ignore[override]  # no `limits`: it calls no service
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        by: Sequence[str] | None = None,
        aggregates: Mapping[str, Any] | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> ComponentSpec:
        """This bolt for a Topology. Arguments that are left out are the class's.

        Args:
            name (str): as in ``Bolt.spec``.
            inputs (ComponentSpec | GlobalStreamId | list | dict): as in ``Bolt.spec``.
            par (int | dict[str, int]): as in ``Bolt.spec``.
            config (dict): as in ``Bolt.spec``.
            by (list[str]): the columns of the key.
            aggregates (dict[str, str | tuple[str, str]]): name → ``(column, function)``, or ``"count"``.
            max_rows (int): waiting rows are combined as soon as there are this many, at least 1.
            max_bytes (int): or as soon as they have this many bytes, at least 1.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.

        Raises:
            ArgumentError: an unknown function, or a bound below 1.
            ArgumentTypeError: an argument of another type.
            SchemaError: a column that an input does not have, or a type that is not grouped or aggregated.
        """
        chosen = {
            "combiner.by": by if by is None or isinstance(by, str) else list(by),
            "combiner.aggregates": dict(aggregates) if isinstance(aggregates, Mapping) else aggregates,
            "combiner.max.rows": max_rows,
            "combiner.max.bytes": max_bytes,
        }
        spec = super().spec(name=name, inputs=inputs, par=par, config=spec_config(cls.config, config, chosen))
        _bound(spec.config.get("combiner.max.rows", cls.max_rows), "max_rows")
        _bound(spec.config.get("combiner.max.bytes", cls.max_bytes), "max_bytes")
        cls._parsed(spec.config)
        return cls._with_outputs(spec)

    @classmethod
    def _parsed(cls, config: Mapping[str, Any]) -> tuple[list[str], list[Aggregate]]:
        by = config.get("combiner.by", cls.by)
        if not isinstance(by, (list, tuple)) or not all(isinstance(each, str) for each in by):
            raise ArgumentTypeError(
                f"`by` of a {cls.__name__} is a list of columns, such as ['shop']. Given: {given(by)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return list(by), parsed(config.get("combiner.aggregates", cls.aggregates))

    @classmethod
    def _needed(cls, config: Mapping[str, Any]) -> list[str] | None:
        return columns_of(*cls._parsed(config))

    @classmethod
    def _derived(cls, columns: Columns, config: Mapping[str, Any]) -> list[str]:
        by, aggregates = cls._parsed(config)
        schema = Aggregation(by, aggregates, columns.schema).schema
        declared = {name: columns.ddl[name] for name in by}
        declared |= {each.name: columns.ddl[each.column] for each in aggregates if each.column and each.keeps_type}
        return [f"{field.name} {declared.get(field.name) or ddl_of(field.type)}" for field in schema]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Begins without rows. A subclass that overrides it must call it.

        Raises:
            ArgumentError: an unknown function.
            ArgumentTypeError: a key that is no list of columns.
        """
        self._by, self._aggregates = self._parsed(conf)
        self._most_rows = conf.get("combiner.max.rows", self.max_rows)
        self._most_bytes = conf.get("combiner.max.bytes", self.max_bytes)
        self._held = HeldBatches(self)
        self._rows = self._bytes = 0
        self._aggregation: Aggregation | None = None

    def process_batch(self, batch: pa.RecordBatch) -> None:
        """Keeps the batch. One that comes again after a fail is combined by itself, so that it fails no other row."""
        if self._held.comes_again(batch):
            self._emit_combined([batch])
            self.ack(batch)
            return
        self._held.hold(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= self._most_rows or self._bytes >= self._most_bytes:
            self._combine()

    def process_tick(self, tup: Any) -> None:
        """Combines the waiting rows, at the end of the range and at other ticks."""
        self._combine()

    def _combine(self) -> None:
        self._rows = self._bytes = 0
        self._held.process(self._emit_combined)

    def _emit_combined(self, batches: list[pa.RecordBatch]) -> None:
        if self._aggregation is None:
            self._aggregation = Aggregation(self._by, self._aggregates, batches[0].schema)
        self.emit_batch(self._aggregation.of(batches))


def _bound(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ArgumentError(
            f"`{name}` of a CombinerBolt is an int of at least 1. Given: {given(value)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
