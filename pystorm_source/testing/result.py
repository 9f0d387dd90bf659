"""The result of a run of a topology."""

from collections.abc import Mapping
from html import escape
from typing import Any

from pystorm_source.api import ComponentSpec
from pystorm_source.errors import StreamNotDeclaredError, given, nearest
from pystorm_source.plan import Plan
from pystorm_source.testing.left_rows import of_left
from pystorm_source.types.arrow import field_type
from pystorm_source.types.html_table import html_table
from pystorm_source.worker.local_run import Counts

_COLUMNS = ("emitted", "executed", "acked", "failed", "unsettled")
_ADDED = (*_COLUMNS, "retries", "dead_letters", "dropped", "duplicate_verdicts", "skipped")
_MOST_ERRORS = 20
"""Errors below the table in a notebook. More: the output grows with the input. Less: the telling one is missing."""


class Result:
    """What ``run_topology`` returns: rows, counts and errors of a run. Prints as a table.

    Counts are dicts, component → count, summed up over all workers.

    Attributes:
        emitted (dict[str, int]): tuples that it emitted.
        executed (dict[str, int]): calls: of ``next_tuple``, or of ``process``.
        acked (dict[str, int]): tuples that a bolt acked; for a spout, trees.
        failed (dict[str, int]): tuples that a bolt failed; for a spout, trees.
        unsettled (dict[str, int]): trees of a spout without a verdict: a bolt forgot to ack.
        retries (dict[str, int]): tuples that a spout emitted again.
        dead_letters (dict[str, int]): tuples of a spout that had no retry left.
        dropped (dict[str, int]): dead letters that left no row.
        duplicate_verdicts (dict[str, int]): acks and fails of tuples that already had a verdict; without effect.
        skipped (dict[str, int]): tuples that a bolt did not get because their trees failed while they were queued.
        metrics (dict): component → what it gave to ``report_metric``.
        errors (list[Exception]): exceptions that did not end the run and, with ``errors="collect"``, the one that did:
            TupleFailed, with the component's exception as cause.
        attempts (int): workers that ran: one for each range, and another for each that died.
        micro_batches (int): micro-batches that came to their end.
        states (dict): bolt that keeps a state → key, a tuple → its values by name.
        is_whole (bool): whether the run came to its end; False only with ``errors="collect"``.
        topology (str): name of the topology.

    Args:
        plan (Plan): what was run.
        rows (Mapping): (component, stream) → rows.
        counts (Counts): of all workers.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Fragile(Bolt):
        ...     def process(self, tup):
        ...         1 / tup.values.n
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [0]])
        ...     fragile = Fragile.spec(inputs=[numbers])
        >>> result = run_topology(Numbers, errors="collect")
        >>> result.errors[0].__cause__
        ZeroDivisionError('division by zero')
    """

    def __init__(self, plan: Plan, rows: Mapping[tuple[str, str], list[tuple[Any, ...]]], counts: Counts):
        self.topology = plan.name
        self._counts = counts
        zeros = dict.fromkeys((component.name for component in plan.components), 0)
        self.emitted = {**zeros, **counts.of("emitted")}
        self.executed = {**zeros, **counts.of("executed")}
        self.acked = {**zeros, **counts.of("acked")}
        self.failed = {**zeros, **counts.of("failed")}
        self.unsettled = {**zeros, **counts.of("unsettled")}
        self.retries = {**zeros, **counts.of("retries")}
        self.dead_letters = {**zeros, **counts.of("dead_letters")}
        self.dropped = {**zeros, **counts.of("dropped")}
        self.duplicate_verdicts = {**zeros, **counts.of("duplicate_verdicts")}
        self.skipped = {**zeros, **counts.of("skipped")}
        self.metrics = counts.metrics
        self.errors: list[Exception] = counts.errors
        self.attempts = 1
        self.micro_batches = 0
        self.is_whole = True
        self.states: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
        self._rows = rows
        streams = ((each.name, stream) for each in plan.components for stream in plan.streams_of(each))
        self._ddls = {(name, stream.name): stream.types for name, stream in streams}
        # Rows that Spark would get from the streams that left the run: without emits of failed attempts.
        self._left: dict[tuple[str, str], list[tuple[Any, ...]]] = {}

    def add(self, other: "Result") -> None:
        """Adds counts, errors and rows of another run, for components of this topology.

        Args:
            other (Result): the result of one of its stages.
        """
        for name in _ADDED:
            own, theirs = getattr(self, name), getattr(other, name)
            for component in own:
                own[component] += theirs.get(component, 0)
        for stream, rows in self._rows.items():
            rows += other._rows.get(stream, [])
        self._counts = self._counts.plus(other._counts)
        self.metrics = {name: metrics for name, metrics in self._counts.metrics.items() if name in self.emitted}
        self.errors += other.errors
        self.attempts += other.attempts

    def rows(
        self, component: str | ComponentSpec, stream: str = "default", *, of_failed_attempts: bool = False
    ) -> list[tuple[Any, ...]]:
        """What a stream emitted in micro-batches that came to their end.

        For a stream that leaves the topology and declares types, these are the rows that Spark would get, without emits
        of failed attempts, which a retry repeats. For other streams, and with ``check_types=False``, these are all
        emits.

        Args:
            component (str | ComponentSpec): the component, by name or as ``WordCount.words``.
            stream (str): its stream. Defaults to 'default'.
            of_failed_attempts (bool): include emits of failed attempts. Defaults to False.

        Returns:
            list[tuple]: the values, in order.

        Raises:
            StreamNotDeclaredError: the topology has no such stream.
        """
        name = component.label if isinstance(component, ComponentSpec) else component
        if (name, stream) not in self._rows:
            streams = [".".join(each) for each in self._rows]
            wanted = f"{name}.{stream}"
            raise StreamNotDeclaredError(
                f"topology {self.topology!r} has the streams {', '.join(streams)}"
                f"{nearest(wanted, streams) or '.'} Given: {given(wanted)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        emitted, left, ddls = self._rows[name, stream], self._left.get((name, stream)), self._ddls[name, stream]
        if of_failed_attempts or left is None or not all(ddls):
            return list(emitted)
        types = [field_type(ddl or "", f"a field of {name}.{stream}") for ddl in ddls]
        return of_left(emitted, left, types, self.is_whole)

    def __repr__(self) -> str:
        width = max(map(len, self.emitted), default=0)
        lines = [f"<{self._headline()}", "  " + " " * width + "".join(f"{name:>11}" for name in _COLUMNS)]
        for component in self.emitted:
            counts = "".join(f"{getattr(self, name)[component]:>11,}" for name in _COLUMNS)
            lines.append(f"  {component:{width}}{counts}")
        return "\n".join([*lines, *(f"  {error}" for error in self.errors)]) + ">"

    def _repr_html_(self) -> str:
        """Called by a notebook."""
        rows = [[name, *(getattr(self, column)[name] for column in _COLUMNS)] for name in self.emitted]
        errors = "".join(f"<pre>{escape(str(error))}</pre>" for error in self.errors[:_MOST_ERRORS])
        return html_table(self._headline(), ("component", *_COLUMNS), rows) + errors

    def _headline(self) -> str:
        return (
            f"Result of {self.topology}: {counted(self.micro_batches, 'micro-batch')}, "
            f"{counted(self.attempts, 'attempt')}, {counted(len(self.errors), 'error')}"
        )


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"
