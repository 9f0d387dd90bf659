"""Keeps two uses of one topology from giving different rows the same ``idempotency_key``.

A key without columns is topology, query, micro-batch, partition and number of the row. Two calls of ``apply`` can
count the same numbers:

- in the plan of a stream: Spark allows an observed name once in a query, except for the same rows (a self-join). So a
  use observes its own name, and Spark refuses a join, a union or a chain of two when it is made, also over Connect;
- inside of ``foreachBatch``, or with ``batch_id``: this process sees both calls, and whether the rows are the same;
- made outside of a stream and read by its tasks: this shows only when they run. Keys are refused then.

``use`` names a use; its keys begin with that name.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pystorm_source.errors import ArgumentError
from pystorm_source.operator.task import OperatorPlan
from pystorm_source.plan.lint import may_ask_for_keys
from pystorm_source.spark.input_feed import key_prefix
from pystorm_source.spark.versions import may_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REMEDY = "name the columns that tell a row from all others: apply(df, ..., key=['id']); or give all uses but one a name"
_DUPLICATED = "DUPLICATED_METRICS_NAME"
_MOST_USES = 64
"""Uses of micro-batches that are remembered. Fewer: a second one is not noticed. More: their DataFrames stay in
memory."""

_batches: "OrderedDict[tuple[str, ...], DataFrame]" = OrderedDict()


@dataclass(frozen=True)
class Use:
    """``operator``: what tasks do; ``marker``: the name that its rows observe, empty for none."""

    operator: OperatorPlan
    marker: str

    def marked(self, rows: "DataFrame") -> "DataFrame":
        """The rows, marked to keep their query from another use of that name. Raises ArgumentError if there is one."""
        if not self.marker:
            return rows
        from pyspark.sql import functions

        try:
            return rows.observe(self.marker, functions.count(functions.lit(1)).alias("rows"))
        except Exception as error:
            if _DUPLICATED not in str(error):
                raise
        raise ArgumentError(
            f"the DataFrame stems from another use of {self.operator.plan.name!r}, and rows of both would have the "
            f"same idempotency_key: {REMEDY}, apply(df, ..., use='again'). Given: use={self.operator.use!r}",
            code="PYSTORM_INVALID_ARGUMENT",
        )


def use_of(df: "DataFrame", operator: OperatorPlan) -> Use:
    """The operator over these rows, fenced from others.

    Raises ArgumentError if two rows would have the same key.
    """
    if operator.keep is not None and operator.keep.key:
        return Use(operator, "")
    asks = may_ask_for_keys(operator.plan)
    marker = _marker(operator)
    if may_stream(df):
        if operator.batch_id is not None:
            raise ArgumentError(
                "batch_id numbers a batch query, and a stream numbers its micro-batches itself: leave it out. "
                f"Given: batch_id={operator.batch_id!r}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        if asks or operator.use:
            return Use(operator, marker)
        return Use(replace(operator, refused=_unseen("its bolts do not name idempotency_key in their source")), "")
    place = _place(df, operator)
    if place is None:
        if operator.use:
            return Use(operator, marker)
        return Use(replace(operator, refused=_unseen("apply() stands outside of the stream that reads its rows")), "")
    if _has_other_rows(place, df):
        why = f"another use of {operator.plan.name!r} in micro-batch {place[2]} has the same idempotency_key for others"
        if asks:
            raise ArgumentError(
                f"{why}: {REMEDY}, apply(df, ..., use='again'). Given: use={operator.use!r}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return Use(replace(operator, refused=f"{why}: {REMEDY}"), "")
    return Use(operator, "")


def _marker(operator: OperatorPlan) -> str:
    name = key_prefix(operator.plan.name, operator.use)
    return f"use of {name} (for another one: apply(..., use='again'), or key=['id'])"


def _unseen(why: str) -> str:
    return f"nothing tells this use of the topology from another one, as {why}: {REMEDY}, apply(df, ..., use='again')"


def _place(df: "DataFrame", operator: OperatorPlan) -> tuple[str, ...] | None:
    """Query, run and number of this call's micro-batch, with the name of the use; None outside of a micro-batch."""
    query = run = number = None
    try:
        context = df.sparkSession.sparkContext
        names = ("sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId")
        query, run, number = map(context.getLocalProperty, names)
    except Exception:  # Spark Connect has none
        pass
    if number is None:
        if operator.batch_id is None:
            return None
        query, run, number = "", "", str(operator.batch_id)
    return query or "", run or "", number, operator.plan.name, operator.use


def _has_other_rows(place: tuple[str, ...], df: "DataFrame") -> bool:
    """Whether another DataFrame has that place; otherwise this one has it from now on."""
    known = _batches.get(place)
    if known is not None:
        return not df.sameSemantics(known)
    if place[0]:
        # A stream's earlier micro-batches are over. Their DataFrames would keep shuffle files from being removed.
        for each in list(_batches):
            if each[:2] == place[:2] and each[2] != place[2]:
                _batches.pop(each, None)
    _batches[place] = df
    while len(_batches) > _MOST_USES:
        _batches.popitem(last=False)
    return False
