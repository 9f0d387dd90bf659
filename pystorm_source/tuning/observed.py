"""What was observed of a topology, in the same form for a local run and for a query's records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pystorm_source.records.record import ComponentProgress, LimitProgress


class MicroBatch(NamedTuple):
    """One micro-batch of a query. ``seconds``: its duration; ``task_seconds``: the sum over its tasks; ``longest``: the
    longest range; ``ranges``: tasks; ``output_full``: the longest time that a task waited for Spark to take rows;
    ``elapsed``: from the start of the first task to the end of the last one, 0.0 if unknown.

    Example: in 1.3 s, two tasks took 0.9 s each, side by side: 0.4 s were spent outside of tasks.
    """

    seconds: float
    rows: int
    task_seconds: float
    longest: float
    ranges: int
    output_full: float = 0.0
    elapsed: float = 0.0

    def inside(self, cores: int) -> float:
        """Returns the seconds during which tasks ran, on so many cores."""
        if self.elapsed > 0:
            return min(self.seconds, self.elapsed)
        return min(self.seconds, max(self.longest, self.task_seconds / max(1, min(cores, self.ranges))))

    def outside(self, cores: int) -> float:
        """Returns the seconds without a running task."""
        return max(0.0, self.seconds - self.inside(cores))


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Counts, and shares of the time, over ``seconds``.

    ``components``: as in records. ``scheduler``: empty if unknown. ``tuples``: tuple trees, or offsets of ranges, that
    the spouts finished. ``processors``: in use on average; None if unknown. ``cpu_share``: component → share of its
    calls' duration that they computed rather than waited; ``requests``: async bolts → the bound of their requests.
    ``spread``: component → what its busiest task did, relative to the mean. ``emitted_at_once``: most tuples that
    waited for room in a queue, so one call emitted that many too many. ``partitions``: sizes of the spouts'
    partitions. For a query: ``micro_batches``; ``backlog``; ``target``: seconds; ``reason``: the most frequent limit.
    ``limits``: how the components used rate limits. ``batched``: BatchingBolts → their ``tuples_between_batches``.
    ``open_files``: before, most at a time, and how many this process may open; zeros if unknown. ``collecting``: share
    of the time spent on garbage collection.
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
        """Share of the micro-batches' duration that tasks ran, the base of components' shares; 1.0 without any."""
        seconds = sum(each.seconds for each in self.micro_batches)
        return sum(each.inside(self.cores) for each in self.micro_batches) / seconds if seconds > 0 else 1.0

    @property
    def bolts(self) -> tuple[ComponentProgress, ...]:
        return tuple(each for each in self.components if each.kind != "spout")

    @property
    def spouts(self) -> tuple[ComponentProgress, ...]:
        return tuple(each for each in self.components if each.kind == "spout")

    def component(self, name: str) -> ComponentProgress:
        """Returns the component of that name. Raises KeyError."""
        for each in self.components:
            if each.name == name:
                return each
        raise KeyError(name)

    def busy(self, component: ComponentProgress) -> float:
        """Returns the share of the time that it works: under ``threads`` its busiest task, otherwise all its tasks."""
        return min(1.0, component.capacity)
