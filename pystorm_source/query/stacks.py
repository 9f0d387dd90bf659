"""What the tasks of a streaming query do at this moment, asked by the job."""

from typing import TYPE_CHECKING, Any

from pystorm_source.errors import ArgumentTypeError, UsageError, given
from pystorm_source.errors.door import door
from pystorm_source.records.question import WAIT_SECONDS, ask
from pystorm_source.records.record_folder import private_folder, question_paths
from pystorm_source.records.standstill import RunState, Stacks

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


@door
def stacks(query: "StreamingQuery", seconds: float = WAIT_SECONDS) -> Stacks:
    """Why a query is stuck: which component is in a call and since when, at which line, and what waits for it.

    The runner of the query asks the process of each task over the connection that brings its reports. A task answers
    while its components are called, even if they sleep, wait for a lock, or compute in Python. The tasks are not
    stopped, and a query that is not asked pays nothing. Between two micro-batches no task knows its query, so all idle
    queries of this driver answer.

    Args:
        query (StreamingQuery): a query that reads ``format("pystorm")``, or a topology.
        seconds (float): how long to wait for answers. Defaults to 2.0.

    Returns:
        Stacks: its text has a part for each range that is being read; ``runs`` has the same as data.

    Raises:
        UsageError: no runner of the query can be asked: under Spark Connect, with ``feedback=off``, before its first
            micro-batch, or after its end. The message names what applies.
        ArgumentTypeError: something else than a query is given.

    Example:
        >>> from pystorm_source import read_stream, stacks
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
        >>> query = read_stream(spark, Numbers).writeStream.format("noop").start()
        >>> query.processAllAvailable()
        >>> stacks(query)
        topology 'Numbers', run ..., runner process ...
          no range is read: the driver waits for Spark...
        >>> query.stop()
    """
    if not hasattr(query, "lastProgress") or not hasattr(query, "runId"):
        raise ArgumentTypeError(
            f"stacks takes a streaming query, as writeStream.start() returns it. Given: {given(query)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    if not hasattr(query, "_jsq"):
        raise _cannot_be_asked("under Spark Connect the driver may be on another machine", query.runId)
    if not query.isActive:
        raise _cannot_be_asked("the query has ended", query.runId)
    return chosen(ask(question_paths(private_folder(_jvm())), seconds), str(query.runId))


def chosen(found: tuple[RunState, ...], run_id: str) -> Stacks:
    """What the query's sources do, out of all that have answered; the idle ones if none is known to be the query's.
    Raises UsageError if no source is left."""
    runs = tuple(run for run in found if any(each.run_id == run_id for each in run.ranges))
    runs = runs or tuple(run for run in found if not run.ranges)
    if not runs:
        raise _cannot_be_asked("no task has begun, or feedback=off", run_id)
    return Stacks(runs=runs)


def _cannot_be_asked(why: str, run_id: object) -> UsageError:
    return UsageError(
        f"the tasks of the query cannot be asked ({why}): call stacks(query) or pystorm-source ui --stacks on the "
        f"driver's machine, while a micro-batch runs. Given: the query {run_id}",
        code="PYSTORM_NO_STACKS",
    )


def _jvm() -> int:
    """The process id of the driver's JVM."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    return int(gateway.jvm.java.lang.ProcessHandle.current().pid())
