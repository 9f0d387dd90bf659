"""A task's report of one range, as JSON with bounds on everything.

It arrives at a socket, so any other form is refused and nothing is evaluated.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from pystorm_source.channel.reports.protocol import MOST_BODY
from pystorm_source.errors import given
from pystorm_source.records.stall_reasons import CIRCUIT_BREAKER, Reason
from pystorm_source.spark.query_batch import QueryBatch
from pystorm_source.types.json_values import JsonDecoder, utf8_json
from pystorm_source.worker.component_columns import SLOTS, ComponentColumns, column
from pystorm_source.worker.run_counts import RunCounts

VERSION: Literal[1] = 1
_MOST = 2**63 - 1

SHORTEST = 1e-6
"""Least seconds of a range: keeps quotients by it within bounds."""

Count = Annotated[int, Meta(ge=0, le=_MOST)]
Seconds = Annotated[float, Meta(ge=0, le=1e8)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    pass


class Latency(_Strict, frozen=True, kw_only=True):
    """Seconds that calls of components took; 0.0 without calls."""

    p50: Seconds
    p95: Seconds
    p99: Seconds


class RangeReport(_Strict, frozen=True, kw_only=True, omit_defaults=True):
    """As a task sends it, at the end of the range.

    ``batch``, ``spout``, ``partition``, ``start``, ``end``: of the RangePartition. ``attempt``: of the Spark task, from
    0. ``offsets``: number of offsets read; for a spout without offsets, its emits. ``seconds``: from taking the worker
    to the end of the range, including the time that Spark took to fetch the rows. ``stalls``: reason → seconds, of the
    topology's task that stalled longest for it; ``components`` has the sums. ``acked``, ``failed``: tuple trees;
    ``refused``: failed ones that no retry helps, which says nothing about the load. ``latency``: of all calls, before
    ``components`` merges neighbouring values. ``broken_off``: an exception has ended the attempt: only its errors in
    ``components`` count. ``query``: in the reports of the first range. The others: docs/COUNTERS.md.
    """

    v: Literal[1]
    batch: Annotated[str, Meta(max_length=128)]
    spout: Annotated[str, Meta(max_length=1024)]
    partition: Annotated[str, Meta(max_length=4096)]
    start: Count
    end: Count
    attempt: Annotated[int, Meta(ge=0, le=1_000_000)]
    offsets: Count
    rows: Count
    seconds: Annotated[float, Meta(ge=SHORTEST, le=1e8)]
    stalls: dict[Reason, Seconds]
    acked: Count
    failed: Count
    latency: Latency
    refused: Count = 0
    broken_off: bool = False
    components: ComponentColumns | None = None
    query: QueryBatch | None = None

    def __post_init__(self) -> None:
        if not self.offsets <= self.end - self.start:
            raise ValueError(f"more offsets read than there are between start and end. Given: {given(self.offsets)}")

    @property
    def paused(self) -> float:
        """Seconds that calls waited for an open circuit breaker."""
        return self.stalls.get(CIRCUIT_BREAKER, 0.0)

    @classmethod
    def of(
        cls,
        counts: RunCounts,
        *,
        batch: str,
        spout: str,
        partition: str,
        start: int,
        end: int,
        attempt: int,
        offsets: int,
        seconds: float,
        broken_off: bool = False,
        query: QueryBatch | None = None,
    ) -> "RangeReport":
        """Builds a report from the worker's counts of a range and the task's identity."""
        return cls(
            v=VERSION,
            batch=batch,
            spout=spout,
            partition=partition,
            start=start,
            end=end,
            attempt=attempt,
            offsets=offsets,
            rows=counts.rows,
            seconds=max(SHORTEST, seconds),
            # A test compares the names.
            stalls={reason: round(stalled, 6) for reason, stalled in counts.stalls.items() if stalled},  # type: ignore[misc]
            acked=counts.acked,
            failed=counts.failed,
            refused=counts.refused,
            latency=Latency(**{name: round(latency, 9) for name, latency in counts.latency.items()}),
            broken_off=broken_off,
            components=counts.components,
            query=query,
        )


class TaskReport(RangeReport, frozen=True, kw_only=True):
    """A report in the runner. ``arrived``: when it arrived, in seconds of the runner's monotonic clock."""

    arrived: float

    def slim(self) -> "TaskReport":
        """Returns the report with all components merged into one, with only the columns that ``counts/summary`` adds
        up."""
        if self.components is None:
            return self
        columns = {name: column([united(getattr(self.components, name))]) for name, united in SUMMARISED.items()}
        return replace(self, components=ComponentColumns(**columns))


SUMMARISED: dict[str, Callable[[Iterable[int]], int]] = {
    "retries": sum,
    "dead_letters": sum,
    "queue_high_mark": partial(max, default=0),
}
"""Column → the value of all components together."""

_decoder: JsonDecoder[RangeReport] = JsonDecoder(RangeReport)


def encode(report: RangeReport, most: int = MOST_BODY) -> bytes:
    """JSON, as ``decode`` takes it. A report of more than ``most`` bytes loses what matters least: first the spread of
    latencies, then metrics, frames of errors, all errors, latencies and stalls, at last everything in the components
    except what ``counts/summary`` adds up."""
    body = utf8_json(report)
    for shorter in _SHORTER:
        if len(body) <= most or report.components is None:
            break
        report = replace(report, components=shorter(report.components))
        body = utf8_json(report)
    return body


def _unspread(columns: ComponentColumns) -> ComponentColumns:
    """Puts all calls of a component into its middle slot."""
    return replace(columns, execute=_in_one_slot(columns.execute), complete=_in_one_slot(columns.complete))


def _in_one_slot(pairs: tuple[int, ...]) -> tuple[int, ...]:
    of: dict[int, list[tuple[int, int]]] = {}
    for place, count in zip(pairs[::2], pairs[1::2], strict=True):
        of.setdefault(place // SLOTS, []).append((place, count))
    found: list[int] = []
    for slots in of.values():
        calls = sum(count for _, count in slots)
        below = 0
        for place, count in slots:
            below += count
            if 2 * below >= calls:
                found += [place, calls]
                break
    return tuple(found)


def _untimed(columns: ComponentColumns) -> ComponentColumns:
    names = [f"{kind}{what}" for kind in ("execute", "complete") for what in ("", "_total", "_longest")]
    return replace(columns, stall_seconds={}, **dict.fromkeys(names, ()))


def _unframed(columns: ComponentColumns) -> ComponentColumns:
    return replace(columns, last_errors=tuple(replace(each, frames=()) for each in columns.last_errors))


_SHORTER: tuple[Callable[[ComponentColumns], ComponentColumns | None], ...] = (
    _unspread,
    lambda columns: replace(columns, metrics=()),
    _unframed,
    lambda columns: replace(columns, last_errors=()),
    _untimed,
    lambda columns: ComponentColumns(**{name: getattr(columns, name) for name in SUMMARISED}),
    lambda columns: None,
)


def decode(body: bytes, arrived: float) -> TaskReport:
    """Reads the result of ``encode``. Raises ValueError for anything else."""
    report = _decoder.decode(body)
    return TaskReport(**{name: getattr(report, name) for name in _FIELDS}, arrived=arrived)


_FIELDS = RangeReport.__struct_fields__
