"""The backlog that a query's progress shows (``sources[0].latestOffset``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import to_builtins

from pystorm_source.errors import cut
from pystorm_source.records.fitting import MOST_BYTES, bytes_in_progress, fitting
from pystorm_source.records.record import TopologyProgress
from pystorm_source.source.driver.batch_plan import Planned
from pystorm_source.source.offsets.partition_index import total

MOST_OF_REASON = 500
"""Characters of an error in a report."""
MOST_NAMED = 100
"""Most partitions that a report names; with more it has only the sum, because each micro-batch prints and stores it."""


@dataclass(frozen=True, eq=False)
class Backlog:
    """At the last trigger. Offsets that the micro-batch now admitted takes are not backlog any more; those that
    Trigger.AvailableNow leaves to the next run are."""

    planned: Planned
    tasks: Mapping[str, Any] | None = None
    """The tasks' reports, as ``ReportSummary`` adds them up."""

    def to_json(self, topology: TopologyProgress | None = None) -> dict[str, Any]:
        """``{"backlog", "backlogByPartition", "limits", "offsets", "pausedMillis", "polls", "tasks", "throttled",
        "topology", "unavailable", "unavailableMillis", "version"}``, the lag, and the keys of ``Throttling``: JSON
        values, sorted.

        ``offsets`` are the heads, ``backlog`` counts the offsets left after the micro-batch now admitted, ``throttled``
        names the partitions that leave a backlog behind, ``limits`` are the user's limits in force. ``polls``: spout →
        how often the run has asked it for its heads. ``unavailable``: spouts whose sources are busy, and why. With more
        than 100 partitions, none is named. ``topology`` is shortened until the JSON has at most 64 KiB.
        ``avgOffsetsBehindLatest``, ``max…`` and ``min…`` are strings, as in the metrics of Spark's Kafka source.
        """
        planned, rows = self.planned, self._rows()
        waits, user, paused = planned.seen.waiting, planned.limits, planned.seen.paused
        left = waits.head[rows] - planned.ends[rows]
        waiting = np.flatnonzero(left)
        limits = {
            "maxOffsetsPerPartition": user.per_partition,
            "maxOffsetsPerTrigger": user.total,
            "minOffsetsPerTrigger": user.minimum,
        }
        report: dict[str, Any] = {
            "backlog": total(left),
            "limits": {name: limit for name, limit in limits.items() if limit is not None},
            "throttled": len(waiting),
            "version": 1,
        }
        if len(rows):
            report["avgOffsetsBehindLatest"] = str(report["backlog"] / len(rows))
            report["maxOffsetsBehindLatest"] = str(left.max())
            report["minOffsetsBehindLatest"] = str(left.min())
        if len(rows) <= MOST_NAMED:
            names = [str(waits.index.key(row)) for row in rows.tolist()]
            report["backlogByPartition"] = dict(zip(names, left.tolist(), strict=True))
            report["offsets"] = waits.index.section_at(waits.head, rows)
            report["throttled"] = [names[i] for i in waiting.tolist()]
        report |= planned.throttling.to_json()
        if busy := planned.seen.busy:
            report["unavailableMillis"] = {name: round(1000 * each.seconds) for name, each in busy.items()}
            report["unavailable"] = {name: cut(each.reason, MOST_OF_REASON) for name, each in busy.items()}
        if planned.seen.polls:
            report["polls"] = dict(planned.seen.polls)
        if self.tasks is not None:
            report["tasks"] = self.tasks
        if paused:
            report["pausedMillis"] = {name: round(1000 * seconds) for name, seconds in paused.items()}
        if topology is not None:
            report["topology"] = to_builtins(fitting(topology, MOST_BYTES - bytes_in_progress(report)))
        return dict(sorted(report.items()))

    def _rows(self) -> npt.NDArray[np.intp]:
        """All rows except rows of spouts that count permits: permits are no backlog."""
        seen = self.planned.seen
        counts = np.ones(len(self.planned.ends), np.bool_)
        for component in seen.without_offsets:
            counts[seen.waiting.index.rows_of(component)] = False
        return np.flatnonzero(counts)
