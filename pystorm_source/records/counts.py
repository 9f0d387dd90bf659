"""The table of counts: what the engine counts, its unit, how it adds up, what it means. A new count is a row here.

A row is a field with a ``Count``. Rows of ``Counts`` are in progress records, on the page and in Prometheus; rows of
``TaskCounts`` are not. All readers use the rows::

    slot of an executor ─▶ worker/task_counts ─▶ worker/component_columns ─▶ counts/batch_counts ─▶ Counts of a record
                                 └─▶ worker.report()     (on the wire)                                └─▶ metrics

``python -m docs.option_pages --write`` prints docs/COUNTERS.md and docs/METRICS.md from them.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import add, sub
from typing import Annotated, Any, Literal, NamedTuple, Self, get_type_hints

import msgspec
from msgspec.structs import astuple


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A part of a record. Unknown fields of a newer version are passed over."""


class Count(NamedTuple):
    """A row. ``meaning`` continues ``unit``: ``emits`` ``of tuples that had failed``; the docstring of its class adds
    the rest.

    ``adds``: ``sum``; ``max``, the largest of several tasks; ``now``, a sum that can fall: it is never subtracted and
    stays in the worker. ``wire``: the name of its column in a task's report, short for those that nearly every report
    has; empty if it stays in the worker, or is counted by stream. ``metric``: its name in Prometheus. A row of
    ``Counts`` is a ``sum`` with ``wire`` and ``metric``; one of ``TaskCounts`` has no ``metric``. A ``float`` has the
    unit ``seconds``.
    """

    unit: str
    meaning: str
    adds: Literal["sum", "max", "now"] = "sum"
    wire: str = ""
    metric: str = ""

    @property
    def text(self) -> str:
        """Unit and meaning: the help text of a metric."""
        return f"{self.unit} {self.meaning}".strip()


class Counts(Record, frozen=True, kw_only=True):
    """What a component did. docs/COUNTERS.md explains each count: it is printed from the rows and these attributes.

    Attributes:
        executed (int): calls of ``next_tuple`` that emitted, ended the range or raised; all calls of ``next_batch`` and
            ``process``; for ``process_batch`` of an ``ArrowBolt``, the rows instead of the calls
        emitted (int): all streams count. A batch counts as its rows, here and below. In a sink with
            ``topology.dead.letter.path``, the component ``Input`` also emits the dead letters
        transferred (int): one emit counts once per receiver
        acked (int): if an ``ArrowBolt`` fails some rows of a batch with ``fail(batch, rows=mask)``, the others count as
            acked now, and again after the retry
        retries (int): the engine or a ``ReliableSpout`` emits them; spouts only
        timed_out (int): a spout's trees time out after ``topology.message.timeout.secs``, an ``AsyncBolt``'s requests
            after ``topology.async.request.timeout.secs``
        dead_letters (int): records that cannot be decoded count, too; spouts only
        dropped (int): causes: ``topology.dead.letter=drop``, or a stream that is not read; spouts only
        errors (int): that did not end the run, or that a component reported by ``raise_exception``; in a progress
            record, also the exception that ended an attempt
        ended_requests (int): each call of ``process``, and of an async ``process_tick``, is a request. Requests that
            timed out or were cancelled count, too
        request_seconds (float): each request counts from its start, or from its permit if it waited for one, until the
            turn that noticed its end. ``request_seconds / ended_requests`` is the mean time of a request
    """

    executed: Annotated[int, Count("calls", "that did something", wire="x", metric="execute_count")] = 0
    emitted: Annotated[int, Count("tuples", "emitted", metric="emit_count")] = 0
    transferred: Annotated[int, Count("tuples", "handed to receiving tasks", metric="transfer_count")] = 0
    acked: Annotated[int, Count("tuples", "acked; for a spout, tuple trees", wire="a", metric="ack_count")] = 0
    failed: Annotated[int, Count("tuples", "failed; for a spout, tuple trees", wire="failed", metric="fail_count")] = 0
    retries: Annotated[int, Count("emits", "of tuples that had failed", wire="retries", metric="retry_count")] = 0
    timed_out: Annotated[
        int, Count("tuple trees or requests", "that timed out", wire="timed_out", metric="timeout_count")
    ] = 0
    dead_letters: Annotated[
        int,
        Count("tuples", "that still failed after their last retry", wire="dead_letters", metric="dead_letter_count"),
    ] = 0
    dropped: Annotated[int, Count("dead letters", "that left no row", wire="dropped", metric="drop_count")] = 0
    skipped: Annotated[
        int,
        Count(
            "tuples",
            "that a bolt did not get because their trees had failed while they waited in its queue",
            wire="skipped",
            metric="skip_count",
        ),
    ] = 0
    errors: Annotated[int, Count("exceptions", "", wire="errors", metric="error_count")] = 0
    ended_requests: Annotated[
        int, Count("requests", "of an AsyncBolt that have ended", wire="er", metric="request_count")
    ] = 0
    request_seconds: Annotated[
        float, Count("seconds", "that the requests of an AsyncBolt took", wire="rs", metric="request_time")
    ] = 0.0

    @property
    def mean_request(self) -> float:
        """Seconds that a request of an AsyncBolt took; 0.0 if none has ended."""
        return self.request_seconds / self.ended_requests if self.ended_requests else 0.0

    def __add__(self, other: Self) -> Self:
        """Adds up both; a count that does not add up is the larger of the two."""
        return self._with(other, _PLUS)

    def __sub__(self, earlier: Self) -> Self:
        """The counts since ``earlier``; a count that cannot be subtracted is the value now."""
        return self._with(earlier, _MINUS)

    def _with(self, other: Self, how: Sequence[Callable[[Any, Any], Any]]) -> Self:
        names = self.__struct_fields__
        values = map(lambda each, a, b: each(a, b), how, astuple(self), astuple(other))
        return type(self)(**{name: value for name, value in zip(names, values, strict=True) if value})


class TaskCounts(Counts, frozen=True, kw_only=True, rename=None):
    """The counts of one task, or of all tasks of a component in a worker.

    Attributes:
        refused (int): causes: ``Hopeless``, or ``never`` in ``topology.retry.on``; spouts only. Admission control
            ignores them
        pending_high_mark (int): trees count at the end of a turn
        tuples_published (int): under ``threads``, a tuple for all tasks of a bolt counts once
        request_limit (int): ``topology.async.max.pending``, or what ``adaptive`` has found
        busy_seconds (float): calls, ticks, verdicts, publishing; for a bolt with ``processes=``, the time of its
            processes, and the time to send tuples to them and to take back results
        process_seconds (float): 0.0 for a bolt without ``processes=``
        unread_high_mark (int): the bolt gets this many more tuples after its task stops sending. Never more than
            ``topology.executor.receive.buffer.size``
    """

    duplicate_verdicts: Annotated[int, Count("acks and fails", "of tuples that already had a verdict")] = 0
    refused: Annotated[int, Count("tuple trees", "that failed and are not retried")] = 0
    unsettled: Annotated[int, Count("tuple trees", "of a spout that have no verdict yet", adds="now")] = 0
    ticks: Annotated[int, Count("tick tuples", "that a bolt got")] = 0
    stalled_turns: Annotated[int, Count("turns", "with pending emits and no room for them")] = 0
    insert_failures: Annotated[int, Count("inserts", "that found too little room in a receive queue")] = 0
    queue_population: Annotated[int, Count("tuples", "in a receive queue now", adds="now")] = 0
    queue_high_mark: Annotated[int, Count("most tuples", "in a receive queue", adds="max", wire="q")] = 0
    pending_high_mark: Annotated[
        int,
        Count(
            "most open tuple trees",
            "of a spout, or requests of an `AsyncBolt`, in the last range",
            adds="max",
            wire="ph",
        ),
    ] = 0
    pending_emits_high_mark: Annotated[
        int, Count("most tuples", "of a task that waited for room in a full queue", adds="max")
    ] = 0
    tuples_published: Annotated[int, Count("tuples", "put into receive queues", wire="p")] = 0
    batches_published: Annotated[int, Count("batches", "of tuples put into receive queues", wire="n")] = 0
    pending_requests: Annotated[int, Count("requests", "of an `AsyncBolt` in flight now", adds="now")] = 0
    request_limit: Annotated[int, Count("requests", "of an `AsyncBolt` that may be in flight now", adds="now")] = 0
    away: Annotated[int, Count("tuples", "in the processes of a bolt now", adds="now")] = 0
    cancelled_requests: Annotated[int, Count("requests", "cancelled because their tuple's tree failed")] = 0
    busy_seconds: Annotated[float, Count("seconds", "in turns with work", wire="b")] = 0.0
    process_seconds: Annotated[
        float, Count("seconds", "of `busy_seconds` in the processes of a bolt (`processes=`)", wire="ps")
    ] = 0.0
    away_high_mark: Annotated[
        int, Count("most tuples", "without a verdict in the process of a task", adds="max", wire="ah")
    ] = 0
    unread_high_mark: Annotated[
        int,
        Count("most tuples", "sent to the process of a task and not yet taken by its bolt", adds="max", wire="uh"),
    ] = 0


def rows_of(table: type[Counts]) -> dict[str, Count]:
    """Name → row, in the table's order."""
    hints = get_type_hints(table, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in table.__struct_fields__}


ROWS: Mapping[str, Count] = rows_of(TaskCounts)
REPORTED = {name: row for name, row in ROWS.items() if row.wire}
"""Rows with a column in a task's report."""
SUMMED = tuple(name for name, row in REPORTED.items() if row.adds == "sum")
LARGEST = tuple(name for name, row in REPORTED.items() if row.adds == "max")
SHOWN = {name: row for name, row in rows_of(Counts).items() if row.wire}
"""Rows that a record has for each component."""
BY_STREAM = {name: row for name, row in rows_of(Counts).items() if not row.wire}
"""Rows that it has for each stream, too: their sum is the component's."""

_PLUS = [max if row.adds == "max" else add for row in ROWS.values()]
_MINUS = [sub if row.adds == "sum" else lambda now, _: now for row in ROWS.values()]
"""In the order of the rows; the rows of ``Counts`` are the first."""
