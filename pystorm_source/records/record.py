"""The record of one micro-batch of a query: its admission, its components, its bottleneck.

The same structs are the JSON of three places: the section ``topology`` of Spark's progress, the lines of a record file,
and what the page and the metrics read. A field with its default value is left out of the JSON. Durations are seconds,
shares are between 0 and 1.

::

    task ─ report of its range ─▶ runner: sums ─┬─▶ Spark's progress ─▶ listener, progress(query)      of the one before
                                                └─▶ record file ──────▶ progress(query), page, history of the last, too
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import field

from pystorm_source.errors import ComponentNotFoundError, given, nearest
from pystorm_source.records.counts import Counts as Counts
from pystorm_source.records.counts import Record
from pystorm_source.records.outages import outage_text
from pystorm_source.types.json_values import JsonDecoder, utf8_json


class Latency(Record, frozen=True, kw_only=True):
    """Durations in seconds; all are 0.0 if ``count`` is."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p99: float = 0.0
    max: float = 0.0


class StreamCounts(Record, frozen=True, kw_only=True):
    """Tuples of one stream: ``emitted`` by the component, ``transferred`` to receiving tasks."""

    emitted: int = 0
    transferred: int = 0


class Metric(Record, frozen=True, kw_only=True):
    """A metric that a component gave to ``report_metric``: how often, the sum, the last value. Values that are not
    numbers have no sum."""

    count: int = 0
    sum: float = 0.0
    last: str | int | float | bool | None = None


class ErrorRecord(Record, frozen=True, kw_only=True):
    """The last exception of a component. ``at``: seconds since 1970. ``frames``: of the user's files,
    outermost first."""

    text: str
    at: float
    frames: tuple[str, ...] = ()


class ComponentProgress(Record, frozen=True, kw_only=True):
    """One component, summed over the tasks that have read the micro-batch.

    ``kind``: spout or bolt. ``tasks``: its tasks in one worker. ``batch``: the counts of this micro-batch; ``total``:
    since the run began. ``streams``: by name, of this micro-batch. ``execute``: how long its calls took; ``complete``:
    of a spout, from a tuple's emit until its tree was acked. ``capacity``: share of the time that it was busy, as in
    Storm: near 1.0 it can do no more. ``stalls``: reason → share of the time. The largest of any task:
    ``queue_high_mark``: tuples in the receive queue, of ``queue_capacity``; ``pending_high_mark``: of a spout, open
    trees, of an AsyncBolt, requests. ``batch_fill``: tuples of a published batch. ``metrics``: since the run began.

    For a bolt with ``processes=``: ``processes``: how many; ``capacity``: of the busiest one; ``link``: share of the
    time that the Spark task's own process spends sending tuples there and receiving results. The largest of any task:
    ``away_high_mark``: tuples in its process; ``unread_high_mark``: those that the bolt had not begun. That is the halt
    lag: the bolt still gets that many after the task stops sending.
    """

    name: str
    kind: str = "bolt"
    tasks: int = 1
    batch: Counts = field(default_factory=Counts)
    total: Counts = field(default_factory=Counts)
    streams: Mapping[str, StreamCounts] = field(default_factory=dict)
    execute: Latency = field(default_factory=Latency)
    complete: Latency = field(default_factory=Latency)
    capacity: float = 0.0
    stalls: Mapping[str, float] = field(default_factory=dict)
    queue_high_mark: int = 0
    queue_capacity: int = 0
    pending_high_mark: int = 0
    processes: int = 0
    link: float = 0.0
    away_high_mark: int = 0
    unread_high_mark: int = 0
    batch_fill: float = 0.0
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    last_error: ErrorRecord | None = None


class EdgeProgress(Record, frozen=True, kw_only=True):
    """A subscription: tuples that went over it in this micro-batch. ``target``: empty for rows that go to Spark."""

    source: str
    stream: str = "default"
    target: str = ""
    grouping: str = ""
    transferred: int = 0


class LimitProgress(Record, frozen=True, kw_only=True):
    """A component's use of a rate limit in this micro-batch. ``rate``: the limit's value, such as ``50/s``; ``calls``:
    of this component; ``used``: share of the value that all components together used. Shares of the time: ``waits``, at
    least one call waited for a permit; ``paused``, the same while the circuit breaker was open."""

    component: str
    name: str
    rate: str = ""
    calls: int = 0
    used: float = 0.0
    waits: float = 0.0
    paused: float = 0.0


class CacheProgress(Record, frozen=True, kw_only=True):
    """A component's use of a cache in this micro-batch: ``hits``: look-ups that made no call of the service;
    ``misses``: calls for missing entries; ``refreshes``: calls for stale ones. ``entries``: of the largest process; 0
    if they are in a Redis."""

    component: str
    name: str
    hits: int = 0
    misses: int = 0
    refreshes: int = 0
    entries: int = 0

    @property
    def hit_rate(self) -> float:
        """Share of the look-ups that made no call."""
        return hit_rate(self.hits, self.misses, self.refreshes)


def hit_rate(hits: int, misses: int, refreshes: int) -> float:
    """Share of the look-ups in a cache that made no call; 0.0 without look-ups."""
    return hits / max(1, hits + misses + refreshes)


class OutageProgress(Record, frozen=True, kw_only=True):
    """A rate limit whose circuit breaker is open. ``rate``: the limit's value. When the breaker opened, ``since``,
    ``failed`` of ``calls`` had failed. ``error``: the last one. ``probe_at``: when the next call may try the service.
    Times are seconds since 1970."""

    name: str
    rate: str = ""
    since: float = 0.0
    failed: int = 0
    calls: int = 0
    error: str = ""
    probe_at: float = 0.0


class Bottleneck(Record, frozen=True, kw_only=True):
    """What holds the query back. ``component``: its name, empty for Spark itself. ``why``: ``busy``, ``waits for
    downstream``, ``waits for upstream`` (its source), ``waits for Spark`` (the sink, or what comes before it), ``starts
    Python`` (in the first micro-batch), ``waits for its processes``, ``waits for a limit`` or ``waits for a circuit
    breaker``. ``limit``: name of that rate limit; ``capacity`` is then the share of its value that is used. ``advice``:
    what to change."""

    component: str = ""
    capacity: float = 0.0
    why: str = "busy"
    advice: str = ""
    limit: str = ""


class PartitionProgress(Record, frozen=True, kw_only=True):
    """A range of a spout's partition that was among the slowest of its micro-batch."""

    spout: str
    partition: str
    offsets: int = 0
    rows: int = 0
    seconds: float = 0.0


class TaskProgress(Record, frozen=True, kw_only=True):
    """The tasks' reports of a micro-batch, added up.

    Sums: ``ranges`` that were read to their end; ``retried_tasks``: ranges that a later attempt of Spark's task read;
    ``failed_tasks``: attempts that ended with an exception; their ``offsets`` and ``rows``; of the spouts' tuples those
    ``acked`` and ``failed``, the ``retries`` and ``dead_letters``. The largest of any task: ``longest``: seconds that a
    range took; ``queue_high_mark`` and ``queue_capacity``: tuples in the receive queue that was fullest; ``stalls``:
    reason → seconds; ``latency``: ``p50``, ``p95``, ``p99`` of the calls of components, in seconds.
    ``reports_dropped``: reason → reports that could not be used, since the query began.
    """

    ranges: int = 0
    retried_tasks: int = 0
    failed_tasks: int = 0
    offsets: int = 0
    rows: int = 0
    acked: int = 0
    failed: int = 0
    retries: int = 0
    dead_letters: int = 0
    longest: float = 0.0
    queue_high_mark: int = 0
    queue_capacity: int = 0
    stalls: Mapping[str, float] = field(default_factory=dict)
    latency: Mapping[str, float] = field(default_factory=dict)
    reports_dropped: Mapping[str, int] = field(default_factory=dict)


class TopologyProgress(Record, frozen=True, kw_only=True):
    """The components of a query: the section ``topology`` of Spark's progress.

    ``name``: the topology's. ``run``: names the run of the query. ``batch``: the micro-batch of these counts, numbered
    from 0 in this run; -1 before the first. ``seconds``: that its tasks took, added up; ``elapsed``: from the start of
    the first task to the end of the last one. ``scheduler``: the engine's. ``limits``: one for each component and rate
    limit that its calls took permits of; ``caches``: one for each component and cache that it asked. ``computes``:
    share of the components' busy time that their thread computed instead of waiting, without the time in
    ``processes=``; None if each component has its own thread. ``whole``: whether all its ranges were reported.
    ``shortened``: what was left out because the record would have been too long.
    """

    name: str = ""
    run: str = ""
    batch: int = -1
    seconds: float = 0.0
    elapsed: float = 0.0
    scheduler: str = "inline"
    whole: bool = True
    computes: float | None = None
    components: tuple[ComponentProgress, ...] = ()
    edges: tuple[EdgeProgress, ...] = ()
    limits: tuple[LimitProgress, ...] = ()
    caches: tuple[CacheProgress, ...] = ()
    bottleneck: Bottleneck | None = None
    slow_partitions: tuple[PartitionProgress, ...] = ()
    shortened: tuple[str, ...] = ()

    def component(self, name: str) -> ComponentProgress:
        """The component of that name. Raises ComponentNotFoundError, a KeyError."""
        for component in self.components:
            if component.name == name:
                return component
        names = [component.name for component in self.components]
        raise ComponentNotFoundError(
            f"the topology has the components: {', '.join(names) or 'none'}{nearest(name, names) or '.'} "
            f"Given: {given(name)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )


class PystormProgress(Record, frozen=True, kw_only=True):
    """A micro-batch of a query, the state of admission when Spark reported it, and what the topology did.

    ``door``: where the topology is in the query: ``source``, ``operator`` (``apply``) or ``sink``. The last two have no
    admission. ``use``: the name under which an operator is counted, or empty. ``query_id``, ``run_id``, ``name``,
    ``batch_id``: Spark's. A record file has no name; its lines have the others once the first range of the micro-batch
    is reported; before that, the ids are empty and the batch is -1. ``timestamp``: when the micro-batch began, ISO 8601
    in UTC. ``seconds``: its duration; ``rows``: its rows. ``admitted``: False for a micro-batch that a restart runs
    again: its backlog and limits are unknown. ``backlog``: offsets left; ``backlog_by_partition``: by spout and
    partition, while there are at most 100. ``avg_offsets_behind_latest``, ``max_…``, ``min_…``: over the partitions, as
    in Spark's Kafka source. ``limit``: offsets that a micro-batch may read at most, None for any number; ``reason``:
    why, ``none`` if it is not limited; ``throttled_by``: reason → partitions that it leaves with a backlog;
    ``throttled``: their names, while there are at most 100. From the controller, None without one: ``budget``: offsets
    that it grants; ``pressure``: backlog relative to one micro-batch at the target: 1.0 fills it; ``target``: seconds.
    ``polls``: spout → how often the driver has asked it for its heads in this run. ``unavailable``: spouts whose
    sources are busy, and why. ``tasks``: the tasks' reports; ``topology``: components and bottleneck. Both are None if
    there is no report. ``outages``: the limits whose circuit breakers were open when the record was written. The first
    one is then the bottleneck, regardless of the counts.

    ``counts_of_batch_before``: whether ``tasks`` and ``topology`` are of the micro-batch before this one, as in every
    record from Spark's progress: Spark asks for it before it runs the micro-batch, so the counts of a run's last
    micro-batch are missing there.
    """

    door: str = "source"
    use: str = ""
    query_id: str = ""
    run_id: str = ""
    name: str | None = None
    batch_id: int = -1
    timestamp: str = ""
    seconds: float = 0.0
    rows: int = 0
    admitted: bool = True
    backlog: int = 0
    avg_offsets_behind_latest: float = 0.0
    max_offsets_behind_latest: int = 0
    min_offsets_behind_latest: int = 0
    limit: int | None = None
    reason: str = "none"
    throttled_by: Mapping[str, int] = field(default_factory=dict)
    throttled: tuple[str, ...] = ()
    backlog_by_partition: Mapping[str, int] = field(default_factory=dict)
    budget: int | None = None
    pressure: float | None = None
    target: float | None = None
    polls: Mapping[str, int] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    tasks: TaskProgress | None = None
    topology: TopologyProgress | None = None
    outages: tuple[OutageProgress, ...] = ()
    counts_of_batch_before: bool = False

    @property
    def bottleneck(self) -> Bottleneck | None:
        """What holds the query back; None if nothing does, or nothing is known."""
        if not self.outages:
            return self.topology.bottleneck if self.topology is not None else None
        outage, limits = self.outages[0], self.topology.limits if self.topology is not None else ()
        return Bottleneck(
            component=next((limit.component for limit in limits if limit.name == outage.name), ""),
            why="waits for a circuit breaker",
            advice=outage_text(outage),
            limit=outage.name,
        )

    def _repr_html_(self) -> str:
        """Called by notebooks."""
        from pystorm_source.records.progress_table import as_html  # only a notebook needs it

        return as_html(self)

    def to_json(self) -> str:
        """One line of JSON; ``from_json`` reads it."""
        return utf8_json(self).decode()

    @classmethod
    def from_json(cls, line: str | bytes) -> "PystormProgress":
        """Reads what ``to_json`` wrote.

        Raises:
            ValueError: the text is not a record.
        """
        line = line.encode() if isinstance(line, str) else line
        return _decoder.decode(_with_names_of_now(line) if any(name in line for name in _OLD_NAMES) else line)


_OLD_NAMES = {b'"retried":': b'"retries":', b'"deadLettered":': b'"deadLetters":'}
"""Names of counts in files of earlier versions; only objects that consist of counts are searched for them."""
_OLD_COUNTS = re.compile(rb'"(?:batch|total)":\{(?:"[A-Za-z]+":\d+,?)+\}')


def _with_names_of_now(line: bytes) -> bytes:
    def renamed(counts: re.Match[bytes]) -> bytes:
        found = counts[0]
        for old, name in _OLD_NAMES.items():
            found = found.replace(old, name)
        return found

    return _OLD_COUNTS.sub(renamed, line)


_decoder: JsonDecoder[PystormProgress] = JsonDecoder(PystormProgress)


def topology_of(section: Any) -> TopologyProgress | None:
    """The section ``topology`` of a progress; None if it is no such section."""
    try:
        return msgspec.convert(section, TopologyProgress) if section is not None else None
    except msgspec.ValidationError:
        return None
