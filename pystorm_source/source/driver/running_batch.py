"""What the record of a run knows about a micro-batch so far."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pystorm_source.counts.summary import ReportSummary
from pystorm_source.spark.query_batch import QueryBatch


@dataclass
class RunningBatch:
    """A micro-batch that runs, or was the last one. Times are monotonic seconds."""

    number: int
    key: str
    ranges: int
    timestamp: str
    began: float
    admission: Mapping[str, Any]
    summary: ReportSummary
    arrived: float | None = None
    """The last report."""
    seconds: float | None = None
    """Its duration, None while it runs."""
    query: QueryBatch | None = None
    written: float = float("-inf")
    changed: bool = True
    """Since it was written."""

    @property
    def is_whole(self) -> bool:
        return self.summary.ranges >= self.ranges

    def seconds_at(self, now: float) -> float:
        """So far, or in all."""
        if self.seconds is not None:
            return self.seconds
        return max(0.0, (self.arrived if self.is_whole and self.arrived is not None else now) - self.began)
