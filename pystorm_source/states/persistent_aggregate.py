"""A function for ``foreachBatch`` that aggregates each micro-batch into a state."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from pystorm_source.errors import ArgumentTypeError, given
from pystorm_source.errors.door import door
from pystorm_source.states.map_state import MapState

VALUE = "__value"


@door
def persistent_aggregate(
    state: MapState[Any],
    *,
    key: str | Sequence[str],
    value: Any,
    combine: Callable[[Any, Any], Any],
    zero: Callable[[], Any] | None = None,
    on_executors: bool = False,
) -> Callable[[Any, int], None]:
    """Returns a function for ``foreachBatch`` that aggregates each micro-batch into a state, like Trident's.

    It can write any streaming DataFrame, with or without a topology. If the state is transactional or opaque, every
    micro-batch counts exactly once: one that comes again after a failure has the same number.

    The driver gets the rows of a micro-batch, so let Spark aggregate first: with ``value=F.sum("amount")``, there is
    one row per key. Beyond about 100,000 keys per micro-batch, set ``on_executors=True``.

    Args:
        state (MapState): where the values are kept.
        key (str | Sequence[str]): the column that is the key, or several columns, whose values form a tuple.
        value (str | Column): a column's name: each row's value is combined. Or a Spark aggregate by key, such as
            ``F.sum("amount")``, or ``F.struct(F.sum("amount").alias("sum"), F.count("*").alias("n"))``, which makes a
            dictionary. Nulls are left out.
        combine (Callable[[Any, Any], Any]): takes the stored value and the value of the row or of the group, returns
            the new one: ``operator.add``, ``max``.
        zero (Callable[[], Any]): makes the stored value of a new key, such as ``list``. Defaults to None: the first
            value becomes the stored one.
        on_executors (bool): whether tasks update the state, each its own keys, without a cache. The functions and the
            state's URL travel to them. Defaults to False: the driver updates it.

    Returns:
        Callable[[DataFrame, int], None]: for ``df.writeStream.foreachBatch(...)``.

    Raises:
        ArgumentTypeError: ``state`` is no ``MapState``, ``key`` names no column, or ``value`` is neither a name nor a
            column.

    Example:
        >>> from operator import add
        >>> from pyspark.sql import functions as F
        >>> from pystorm_source import TransactionalMapState, persistent_aggregate
        >>> state = TransactionalMapState("sqlite:///counts.db", "counts")
        >>> counted = persistent_aggregate(state, key="word", value=F.count("*"), combine=add)
        >>> counted(spark.createDataFrame([("cow",), ("the",), ("the",)], "word string"), 0)
        >>> state.multi_get(["cow", "the"])
        [1, 2]
    """
    keys = [key] if isinstance(key, str) else list(key)
    if not isinstance(state, MapState):
        raise ArgumentTypeError(f"state is a MapState. Given: {given(state)}", code="PYSTORM_INVALID_ARGUMENT")
    if not keys or not all(isinstance(each, str) for each in keys):
        raise ArgumentTypeError(
            f"key names one column or several. Given: {given(key)}", code="PYSTORM_INVALID_ARGUMENT"
        )
    if not isinstance(value, str) and not hasattr(value, "alias"):
        raise ArgumentTypeError(
            f'value is the name of a column, or an aggregate such as F.sum("amount"). Given: {given(value)}',
            code="PYSTORM_INVALID_ARGUMENT",
        )
    state.prepare()  # a wrong table or a missing database is known now, not in the first micro-batch

    def write(batch: Any, batch_id: int) -> None:
        rows = _rows(batch, keys, value)
        if not on_executors:
            state.aggregate(batch_id, _pairs([rows.toArrow()], len(keys)), combine, zero)
            return
        if isinstance(value, str):
            rows = rows.repartition(*keys)  # a key in one task; an aggregate has done it
        from pystorm_source.spark.versions import map_in_arrow  # imports pyspark

        task = partial(_task, state, batch_id, len(keys), combine, zero)
        map_in_arrow(rows, task, "done boolean").write.format("noop").mode("append").save()

    return write


def _rows(batch: Any, keys: list[str], value: Any) -> Any:
    """Rows of the keys and a value that is not null."""
    if isinstance(value, str):
        rows = batch.select(*keys, batch[value].alias(VALUE))
    else:
        rows = batch.groupBy(*keys).agg(value.alias(VALUE))
    return rows.where(f"{VALUE} IS NOT NULL")


def _pairs(tables: Iterable[Any], keys: int) -> Iterator[tuple[Any, Any]]:
    """Key and value of each row of Arrow tables or batches."""
    for table in tables:
        columns = [column.to_pylist() for column in table.columns]
        yield from zip(columns[0] if keys == 1 else zip(*columns[:keys], strict=True), columns[keys], strict=True)


def _task(
    state: MapState[Any],
    batch_id: int,
    keys: int,
    combine: Callable[[Any, Any], Any],
    zero: Callable[[], Any] | None,
    batches: Iterable[Any],
) -> Iterator[Any]:
    """Aggregates one task's keys. No other task has them."""
    state.aggregate(batch_id, _pairs(batches, keys), combine, zero)
    yield from ()
