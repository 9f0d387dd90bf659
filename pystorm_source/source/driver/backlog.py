"""The backlog, as it appears in a query's progress (``sources[0].latestOffset``)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import to_builtins

from pystorm_source.records.fitting import MOST_BYTES, bytes_in_progress, fitting
from pystorm_source.records.record import TopologyProgress
from pystorm_source.source.admission import Limits
from pystorm_source.source.driver.throttling import Throttling
from pystorm_source.source.offsets.micro_batch import Waiting
from pystorm_source.source.offsets.partition_index import Column, total

MOST_NAMED = 100
"""Partitions that a report names; beyond that it has the sum only, for progress is printed and stored by the batch."""


@dataclass(frozen=True, eq=False)
class Backlog:
    """Heads and ends at the last look. Offsets that the micro-batch now admitted takes are not backlog any more."""

    waits: Waiting
    """The real heads, without the bound of Trigger.AvailableNow."""
    ends: Column
    limits: Limits
    without_offsets: Collection[str] = ()
    """Spouts that count permits, which are no backlog."""
    throttling: Throttling | None = None
    tasks: Mapping[str, Any] | None = None
    """The tasks' reports, as ``ReportSummary`` adds them up."""
    paused: Mapping[str, float] | None = None
    """Rate limits whose services are not called now, and for how many seconds."""

    def to_json(self, topology: TopologyProgress | None = None) -> dict[str, Any]:
        """``{"backlog", "backlogByPartition", "limits", "offsets", "pausedMillis", "tasks", "throttled", "topology",
        "version"}``, the lag, and the keys of ``Throttling``: JSON values, sorted.

        ``offsets`` are the heads, ``backlog`` counts the offsets left after the micro-batch now admitted, ``throttled``
        names the partitions that leave a backlog behind, ``limits`` those of the user in force. Partitions are named
        while there are at most 100. ``topology`` is shortened until the whole has at most 64 KiB.
        ``avgOffsetsBehindLatest``, ``max…`` and ``min…`` are strings, as the Kafka source of Spark has them in its
        metrics.
        """
        rows = self._rows()
        left = self.waits.head[rows] - self.ends[rows]
        waiting = np.flatnonzero(left)
        limits = {
            "maxOffsetsPerPartition": self.limits.per_partition,
            "maxOffsetsPerTrigger": self.limits.total,
            "minOffsetsPerTrigger": self.limits.minimum,
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
            names = [str(self.waits.index.key(row)) for row in rows.tolist()]
            report["backlogByPartition"] = dict(zip(names, left.tolist(), strict=True))
            report["offsets"] = self.waits.index.section_at(self.waits.head, rows)
            report["throttled"] = [names[i] for i in waiting.tolist()]
        if self.throttling is not None:
            report |= self.throttling.to_json()
        if self.tasks is not None:
            report["tasks"] = self.tasks
        if self.paused:
            report["pausedMillis"] = {name: round(1000 * seconds) for name, seconds in self.paused.items()}
        if topology is not None:
            report["topology"] = to_builtins(fitting(topology, MOST_BYTES - bytes_in_progress(report)))
        return dict(sorted(report.items()))

    def _rows(self) -> npt.NDArray[np.intp]:
        counts = np.ones(len(self.ends), np.bool_)
        for component in self.without_offsets:
            counts[self.waits.index.rows_of(component)] = False
        return np.flatnonzero(counts)
