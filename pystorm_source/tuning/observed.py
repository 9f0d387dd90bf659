"""What was observed of a topology, in one shape: in a local run, or in the records of a query."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pystorm_source.records.record import ComponentProgress, LimitProgress


class MicroBatch(NamedTuple):
    """One micro-batch of a query. ``seconds``: all of it; ``task_seconds``: those of its tasks, added up; ``longest``:
    of one range; ``ranges``: tasks; ``output_full``: the longest stall of a task in which Spark did not take rows;
    ``elapsed``: from the begin of the first task to the end of the last one, 0.0 if that is not known.

    Example: 1.3 s, of which two tasks took 0.9 s each, side by side: 0.4 s were spent outside of tasks.
    """

    seconds: float
    rows: int
    task_seconds: float
    longest: float
    ranges: int
    output_full: float = 0.0
    elapsed: float = 0.0

    def inside(self, cores: int) -> float:
        """Seconds in which tasks ran, on so many cores."""
        if self.elapsed > 0:
            return min(self.seconds, self.elapsed)
        return min(self.seconds, max(self.longest, self.task_seconds / max(1, min(cores, self.ranges))))

    def outside(self, cores: int) -> float:
        """Seconds besides the tasks."""
        return max(0.0, self.seconds - self.inside(cores))


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Counts and shares of the time, of ``seconds``.

    ``components``: as records have them. ``scheduler``: empty if it is not known. ``tuples``: that the spouts' trees,
    or ranges, have finished. ``processors``: in use on average, None if that is not known. ``cpu_share``: component →
    share of its calls' duration in which they computed, rather than waited; ``requests``: async bolts → the bound of
    their requests. ``spread``: component → what its busiest task did, by the mean of its tasks. ``emitted_at_once``:
    most tuples that waited for room in a queue, hence that one call emitted beyond it. ``partitions``: sizes of the
    spouts' partitions. Of a query: ``micro_batches``; ``backlog``; ``target``: seconds; ``reason``: of the limit, most
    often. ``limits``: what the components did of rate limits.
    ``batched``: BatchingBolts → their ``tuples_between_batches``. ``open_files``: before, most at a time, and how many
    this process may open; zeros if that is not known. ``collecting``: share of the time in which garbage was collected.
    """

    components: tuple[ComponentProgress, ...]
    seconds: float
    cores: int
    tuples: int = 0
    scheduler: str = ""
    processors: float | None = None
    cpu_share: Mapping[str, float] = field(default_factory=dict)
    requests: Mapping[str, int] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    emitted_at_once: int = 0
    partitions: tuple[int, ...] = ()
    micro_batches: tuple[MicroBatch, ...] = ()
    backlog: int | None = None
    target: float | None = None
    reason: str = ""
    limits: tuple[LimitProgress, ...] = ()
    batched: Mapping[str, int] = field(default_factory=dict)
    open_files: tuple[int, int, int] = (0, 0, 0)
    collecting: float = 0.0

    @property
    def rate(self) -> float:
        """Tuples of the spouts per second."""
        return self.tuples / self.seconds if self.seconds > 0 else 0.0

    @property
    def share_in_tasks(self) -> float:
        """Of the duration of micro-batches, that tasks ran; shares of components are of that. 1.0 without any."""
        seconds = sum(each.seconds for each in self.micro_batches)
        return sum(each.inside(self.cores) for each in self.micro_batches) / seconds if seconds > 0 else 1.0

    @property
    def bolts(self) -> tuple[ComponentProgress, ...]:
        return tuple(each for each in self.components if each.kind != "spout")

    @property
    def spouts(self) -> tuple[ComponentProgress, ...]:
        return tuple(each for each in self.components if each.kind == "spout")

    def component(self, name: str) -> ComponentProgress:
        """The component of that name. Raises KeyError."""
        for each in self.components:
            if each.name == name:
                return each
        raise KeyError(name)

    def busy(self, component: ComponentProgress) -> float:
        """Share of the time in which it works: under ``threads`` its busiest task, else its tasks together."""
        return min(1.0, component.capacity)
