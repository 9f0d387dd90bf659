"""Operators of this process whose counts Spark observes under a name, ``apply(df, Topology, counts="name")``: what they
have done in the micro-batches of a query, as records.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pystorm_source.query.operator_outages import outages_of
from pystorm_source.records.counts import Counts
from pystorm_source.records.from_spark import rows_of, seconds_of
from pystorm_source.records.record import PystormProgress, TopologyProgress

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

MOST_NAMES = 100
"""Most operators and runs that are remembered. More: memory of a job that makes a name for each query. Fewer: the first
ones are not shown."""

MOST_BATCHES = 200
"""Most micro-batches per run. More: memory. Fewer than Spark keeps, 100: they are counted again at each look."""

Read = Callable[[Mapping[str, Any]], TopologyProgress | None]


class _Counted:
    """``name``: the observation's; ``read``: turns what was observed into counts."""

    def __init__(self, name: str, read: Read):
        self.name = name
        self.read = read
        self._runs: OrderedDict[str, dict[int, TopologyProgress]] = OrderedDict()
        self._totals: dict[tuple[str, str], Counts] = {}

    def record(self, progress: Any, of_spark: Mapping[str, Any], seen: Mapping[str, Any]) -> PystormProgress | None:
        """Returns the record of a micro-batch; its totals cover the micro-batches that were looked at."""
        run, batch = str(progress.runId), int(progress.batchId)
        known = self._runs.setdefault(run, {})
        if batch not in known:
            topology = self.read(seen)
            if topology is None:
                return None
            while len(known) >= MOST_BATCHES:
                del known[min(known)]
            known[batch] = self._with_totals(replace(topology, run=run, batch=batch), run)
            while len(self._runs) > MOST_NAMES:
                old, _ = self._runs.popitem(last=False)
                self._totals = {of: counts for of, counts in self._totals.items() if of[0] != old}
        return PystormProgress(
            door="operator",
            use=self.name,
            query_id=str(progress.id),
            run_id=run,
            name=progress.name,
            batch_id=batch,
            timestamp=progress.timestamp,
            seconds=seconds_of(of_spark),
            rows=rows_of(of_spark),
            topology=known[batch],
        )

    def _with_totals(self, topology: TopologyProgress, run: str) -> TopologyProgress:
        components = []
        for each in topology.components:
            total = self._totals.get((run, each.name), Counts()) + each.batch
            self._totals[run, each.name] = total
            components.append(replace(each, total=total))
        return replace(topology, components=tuple(components))


_counted: OrderedDict[str, _Counted] = OrderedDict()


def note(name: str, read: Read) -> None:
    """Counts an operator under that name; a later one of the same name takes its place."""
    _counted.pop(name, None)
    _counted[name] = _Counted(name, read)
    while len(_counted) > MOST_NAMES:
        _counted.popitem(last=False)


def operators_in(progress: Any) -> list[PystormProgress]:
    """The records of the operators that Spark's progress has counts of."""
    if progress is None:
        return []
    of_spark: Mapping[str, Any] = json.loads(progress.json)
    found = []
    for name, row in (progress.observedMetrics or {}).items():
        counted = _counted.get(name)
        record = counted.record(progress, of_spark, row.asDict()) if counted is not None else None
        if record is not None:
            found.append(record)
    return found


def operators_of(query: "StreamingQuery") -> list[PystormProgress]:
    """Returns the operators' records of the newest micro-batch that had rows, or of the newest one. While the query
    runs, they include the services that fail now."""
    recent = list(query.recentProgress)
    found: dict[str, PystormProgress] = {}
    for progress in recent:
        for record in operators_in(progress):
            before = found.get(record.use)
            if record.rows or before is None or not before.rows:
                found[record.use] = record
    if query.isActive:
        return [_with_outages(record) for record in found.values()]
    return list(found.values())


def _with_outages(record: PystormProgress) -> PystormProgress:
    return replace(record, outages=outages_of(record.topology.name) if record.topology is not None else ())
