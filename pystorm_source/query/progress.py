"""The newest record of a streaming query, out of the file that its runner writes, or out of Spark's progress."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pystorm_source.errors import ArgumentTypeError, UsageError, given
from pystorm_source.query.counted import operators_of
from pystorm_source.query.recorded import last_records
from pystorm_source.records.from_spark import joined, reads_ours, records_of
from pystorm_source.records.record import PystormProgress

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def progress(query: "StreamingQuery", source: str | None = None) -> PystormProgress | None:
    """The newest micro-batch of a query as one record: admission, tasks, components, and what holds the query back.

    It covers a topology that the query reads, writes to (``writeStream.format("pystorm")``), or applies by ``apply(df,
    Topology, counts="name")`` in this process. If the query reads one of this package, the record is about that one;
    ``source`` names another one. Operators and sinks have no admission.

    You can call it while the query runs and after its end. After the end, it returns the last micro-batch, and waits up
    to six seconds for tasks that have not reported yet. ``topology.whole`` says whether all have.

    On the driver's machine, the counts are of the record's micro-batch. Elsewhere (Spark Connect), and with
    ``feedback=off``, the record comes from Spark's progress and has the counts of the micro-batch before:
    ``counts_of_batch_before`` says so. The counts of a run's last micro-batch are missing there.

    Args:
        query (StreamingQuery): a query that reads ``format("pystorm")``, or a topology.
        source (str | None): the topology's name, if the query has several. If two have the same name: an operator's
            ``use``, the name that it is counted under, or ``topology.run``. Defaults to None: the only one, or the
            only one that it reads.

    Returns:
        PystormProgress | None: None if no micro-batch has begun yet, and no task has reported.

    Raises:
        UsageError: nothing in it is of this package, or is counted; several are, and ``source`` does not name one; on
            Spark 4.0 and 4.1, there is no record of it on this machine.
        ArgumentTypeError: something else than a query is given.

    Example:
        >>> from pystorm_source import progress, read_stream
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
        >>> writer = read_stream(spark, Numbers).writeStream.format("noop").trigger(availableNow=True)
        >>> query = writer.start()
        >>> query.awaitTermination()
        >>> record = progress(query)
        >>> record.rows, record.backlog
        (2, 0)
    """
    if not hasattr(query, "lastProgress") or not hasattr(query, "runId"):
        raise ArgumentTypeError(
            f"progress takes a streaming query, as writeStream.start() returns it. Given: {given(query)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    last = query.lastProgress
    of_spark = {} if last is None else json.loads(last.json)
    recorded = [joined(found.records[-1], query.name, of_spark) for found in last_records(query)]
    has_source = any(record.door == "source" for record in recorded)
    records = recorded if has_source or not of_spark else [*records_of(of_spark).values(), *recorded]
    records += operators_of(query)
    if not records and not of_spark:
        return None
    return chosen(records, source, of_spark)


def chosen(records: list[PystormProgress], source: str | None, of_spark: Mapping[str, Any]) -> PystormProgress:
    """The record of the source. Raises UsageError if there is no record, or several fit. ``of_spark``: its progress."""
    if not records:
        raise _nothing(of_spark)
    read = [record for record in records if record.door == "source"] or records
    matching = read if source is None else [record for record in records if source in _names(record)]
    if len(matching) == 1:
        return matching[0]
    shown = ", ".join(map(_shown, records))
    what = "several topologies" if source is None else "no such topology, or several of that name"
    raise UsageError(
        f"the query has {what}: say which one, as progress(query, source=…), by its topology, or by what "
        f"tells it from others. There are: {shown}. Given: source={source!r}",
        code="PYSTORM_INVALID_ARGUMENT",
    )


def _names(record: PystormProgress) -> tuple[str, str]:
    """The topology's name, and what distinguishes it from others of that name."""
    return (record.topology.name, record.use or record.topology.run) if record.topology is not None else ("", "")


def _shown(record: PystormProgress) -> str:
    name, other = _names(record)
    return f"{name!r} ({'counts=' if record.use else 'run '}{other!r})"


def _nothing(of_spark: Mapping[str, Any]) -> UsageError:
    if reads_ours(of_spark):
        return UsageError(
            "this Spark asks a source for no report, and the record of the query is not on this machine, or no task "
            "has reported: call progress() on the driver's machine, without feedback=off, or use Spark 4.2 or later. "
            f"Given: the query {of_spark['runId']}",
            code="PYSTORM_NO_PROGRESS",
        )
    return UsageError(
        "nothing in the query is of this package, or is counted: give a query that reads or writes format('pystorm'), "
        "or count an operator in this process: apply(df, Topology, counts='name'). Given: the query "
        f"{of_spark['runId']}",
        code="PYSTORM_NO_PROGRESS",
    )
