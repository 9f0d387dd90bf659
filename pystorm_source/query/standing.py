"""How far a streaming query got: its last micro-batch, and the offsets and backlog of its sources of this package."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pystorm_source.errors import given
from pystorm_source.records.from_spark import rows_of
from pystorm_source.types.json_values import object_in

if TYPE_CHECKING:
    from pyspark.errors import StreamingQueryException
    from pyspark.sql.streaming.query import StreamingQuery

MOST_PARTITIONS = 3
"""Most partitions per spout whose offsets are shown. More: the line is too long to read."""

REPLACED = (
    "was stopped by Spark, for another query was started with the same checkpointLocation: give each query one of its "
    "own; with spark.sql.streaming.stopActiveRunOnRestart=false the second one is refused instead"
)
"""What is said about a query that ``is_replaced``."""


def name_of(query: "StreamingQuery") -> str:
    """Its name, or the first part of its id."""
    return f"query {query.name!r}" if query.name else f"query {str(query.id).partition('-')[0]}"


def state_of(query: "StreamingQuery") -> "tuple[bool, StreamingQueryException | None]":
    """Whether it still runs, and the error that has ended it.

    Order: Spark sets the error before the query no longer runs. In the other order, a query that fails between the two
    reads would seem to have ended well.
    """
    return query.isActive, query.exception()


def is_replaced(query: "StreamingQuery") -> bool:
    """Whether Spark has stopped it because its session runs another query with the same checkpoint."""
    if query.isActive:
        return False
    if hasattr(query, "_jsq"):
        from pyspark.sql.streaming.query import StreamingQueryManager

        manager = StreamingQueryManager(query._jsq.sparkSession().streams())
    else:  # Spark Connect
        manager = query._session.streams  # type: ignore[attr-defined]
    return any(str(other.id) == str(query.id) and str(other.runId) != str(query.runId) for other in manager.active)


def standing(query: "StreamingQuery") -> str:
    """Returns a phrase with its last micro-batch with rows, offsets and backlog."""
    recent = query.recentProgress
    if not recent:
        return "no micro-batch has ended in this run"
    last = next((progress for progress in reversed(recent) if rows_of(progress)), recent[-1])
    text = f"last micro-batch {last['batchId']}, {rows_of(last):,} rows"
    if offsets := ", ".join(filter(None, map(_offsets, recent[-1]["sources"]))):
        text += f"; read up to {offsets}"
    reports = [report for report in map(_report, recent[-1]["sources"]) if "backlog" in report]
    # The offsets of a spout with a journal are permits: a backlog of 0 would say that nothing waits.
    backlogs = [report["backlog"] for report in reports if "avgOffsetsBehindLatest" in report]
    if backlogs:
        return f"{text}; backlog {sum(backlogs):,} offsets"
    return text + ("; no backlog known: spouts without offsets" if reports else "")


def _offsets(source: Mapping[str, Any]) -> str:
    """``lines: '0' 3``; empty if the offset is not of this package."""
    spouts = object_in(source.get("endOffset")).get("offsets")
    if not isinstance(spouts, Mapping):
        return ""
    texts = []
    for spout, partitions in spouts.items():
        shown = [f"{given(name, 40)} {at}" for name, at in list(partitions.items())[:MOST_PARTITIONS]]
        if len(partitions) > MOST_PARTITIONS:
            shown.append(f"… {len(partitions) - MOST_PARTITIONS:,} more")
        texts.append(f"{spout}: {', '.join(shown)}")
    return "; ".join(texts)


def _report(source: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_in(source.get("latestOffset"))
