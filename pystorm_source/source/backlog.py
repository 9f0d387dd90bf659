"""What is waiting, as it appears in a query's progress (``sources[0].latestOffset``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pystorm_source.source.admission import Limits
from pystorm_source.source.micro_batch import Waiting
from pystorm_source.source.offsets import Key, Offsets

MOST_NAMED = 100
"""Partitions that a report names; beyond that it has the sum only, for progress is printed and stored by the batch."""


@dataclass(frozen=True)
class Backlog:
    """Heads and ends at the last look. Offsets that the micro-batch now admitted takes are not backlog any more."""

    waits: Mapping[Key, Waiting]
    ends: Mapping[Key, int]
    limits: Limits

    @classmethod
    def of(cls, waits: Mapping[Key, Waiting], ends: Mapping[Key, int], limits: Limits) -> "Backlog":
        """``waits`` as the world has it, not as Trigger.AvailableNow bounds it."""
        return cls(waits, {key: ends[key] for key in waits}, limits)

    def to_json(self) -> dict[str, Any]:
        """``{"backlog", "backlogByPartition", "limits", "offsets", "throttled", "version"}``: ints and strings, sorted.

        ``offsets`` are the heads, ``backlog`` counts what stays waiting behind the micro-batch now admitted,
        ``throttled`` names the partitions that a limit cut, ``limits`` those in force. Partitions are named while there
        are at most 100.
        """
        left = {key: wait.head - self.ends[key] for key, wait in sorted(self.waits.items())}
        report: dict[str, Any] = {"backlog": sum(left.values())}
        limits = {
            "maxOffsetsPerPartition": self.limits.per_partition,
            "maxOffsetsPerTrigger": self.limits.total,
            "minOffsetsPerTrigger": self.limits.minimum,
        }
        if len(left) <= MOST_NAMED:
            report["backlogByPartition"] = {str(key): size for key, size in left.items()}
        report["limits"] = {name: limit for name, limit in limits.items() if limit is not None}
        if len(left) <= MOST_NAMED:
            report["offsets"] = Offsets({key: wait.head for key, wait in self.waits.items()}, pinned=True).to_json()[
                "offsets"
            ]
        throttled = [str(key) for key, size in left.items() if size]
        report["throttled"] = throttled if len(left) <= MOST_NAMED else len(throttled)
        report["version"] = 1
        return report
