"""What ``processes=k`` gains for a bolt, and where it costs more than it gives, computed from measurements.

    one thread                  |── others ──|──────── bolt ────────|
    processes=2                 |── others ──|link|                     the task's own thread
                                |──── bolt ────|                        process 1
                                |──── bolt ────|                        process 2

All lines share the cores of one Spark task. A tuple takes as long as the longest line, or as all lines divided by the
cores, whichever is longer.
"""

from typing import NamedTuple

from pystorm_source.records.record import ComponentProgress
from pystorm_source.tuning.observed import Observed

PARENT_SECONDS = 1.2e-6
"""Time of the task's own thread to send a tuple and receive its results, by benchmark ``processes``, case
``parent-cpu``. More: bolts of some microseconds stay where they are. Less: they get processes that gain nothing."""
CHILD_SECONDS = 2e-6
"""Time of a process to unpickle a tuple and pickle its results. More, less: as above."""
LIGHT_SECONDS = 5e-6
"""A shorter call is not worth a process. More: bolts that would gain a little are left out. Less: promises small gains
that a larger tuple takes away."""
IDLE = 0.3
"""Share of the time below which processes are hardly used. More: what a burst needs is called idle. Less: keeps
processes whose work one thread could do."""
ROOMY = 0.7
"""Largest share of the time that leaves one thread room for the bolt. More: a burst waits. Less: as for ``IDLE``."""


class Lines(NamedTuple):
    """What each line takes with so many processes, as shares of the present time: the task's ``own`` thread, ``each``
    process, and ``cores``: their sum divided by the cores of the task."""

    processes: int
    own: float
    each: float
    cores: float

    @property
    def longest(self) -> float:
        return max(self.own, self.each, self.cores)


def cores_of_task(observed: Observed) -> int:
    """Returns the cores that one Spark task could have, because no other task uses them."""
    ranges = [each.ranges for each in observed.micro_batches]
    tasks = sum(ranges) / len(ranges) if ranges else sum(size > 0 for size in observed.partitions) or 1
    return max(1, int(observed.cores / max(1.0, tasks)))


def lines_of(bolt: ComponentProgress, observed: Observed, processes: int, cores: int) -> Lines:
    """Computes the lines. ``bolt``: one without processes yet."""
    rate = bolt.execute.count / observed.seconds if observed.seconds > 0 else 0.0
    busy = observed.busy(bolt)
    others = thread_busy(observed) - busy
    own = others + rate * PARENT_SECONDS
    child = busy + rate * CHILD_SECONDS
    return Lines(processes, own, child / processes, (own + child) / cores)


def gain_of(lines: Lines, busy: float) -> float:
    """Returns the factor in tuples per second. ``busy``: share of the time that the one thread is busy now; the rest
    is not due to the topology, and stays."""
    rest = max(0.0, 1.0 - min(1.0, busy))
    return 1.0 / max(1e-9, rest + lines.longest)


def thread_busy(observed: Observed) -> float:
    """Returns the busy share of the task's own thread under ``inline``."""
    return sum(each.link if each.processes else observed.busy(each) for each in observed.components)


def without_processes(bolt: ComponentProgress, observed: Observed) -> float:
    """Returns an upper bound of the one thread's busy share if the bolt had no processes."""
    return thread_busy(observed) - bolt.link + bolt.capacity * bolt.processes
