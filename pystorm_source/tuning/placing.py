"""What ``processes=k`` gains for a bolt, and where it costs more than it gives: arithmetic over what was measured.

    one thread                  |── others ──|──────── bolt ────────|
    processes=2                 |── others ──|link|                     the task's own thread
                                |──── bolt ────|                        process 1
                                |──── bolt ────|                        process 2

All of it shares the cores of one Spark task. The longest line, or all lines by the cores, is what a tuple then takes.
"""

from typing import NamedTuple

from pystorm_source.records.record import ComponentProgress
from pystorm_source.tuning.observed import Observed

PARENT_SECONDS = 1.2e-6
"""Of the task's own thread for a tuple there and back, by benchmark ``processes``, case ``parent-cpu``. More: bolts of
some microseconds are left where they are. Less: they are given processes that gain nothing."""
CHILD_SECONDS = 2e-6
"""Of a process, for unpickling a tuple and pickling what comes of it. More, less: as above."""
LIGHT_SECONDS = 5e-6
"""A call of less than this is not worth a process. More: bolts that would gain a little are left out. Less: small
gains are promised that a larger tuple takes away."""
IDLE = 0.3
"""Share of the time below which processes are hardly used. More: what a burst needs is called idle. Less: processes
that one thread could spare are kept."""
ROOMY = 0.7
"""Share of the time up to which one thread has room for the bolt. More: a burst then waits. Less: as for ``IDLE``."""


class Lines(NamedTuple):
    """Shares of the time of now that each line takes with so many processes: the task's ``own`` thread, ``each``
    process, and ``cores``: all of it by the cores of the task."""

    processes: int
    own: float
    each: float
    cores: float

    @property
    def longest(self) -> float:
        return max(self.own, self.each, self.cores)


def cores_of_task(observed: Observed) -> int:
    """Cores that one Spark task could have, because no other task uses them."""
    ranges = [each.ranges for each in observed.micro_batches]
    tasks = sum(ranges) / len(ranges) if ranges else sum(size > 0 for size in observed.partitions) or 1
    return max(1, int(observed.cores / max(1.0, tasks)))


def lines_of(bolt: ComponentProgress, observed: Observed, processes: int, cores: int) -> Lines:
    """``bolt``: one without processes."""
    rate = bolt.execute.count / observed.seconds if observed.seconds > 0 else 0.0
    busy = observed.busy(bolt)
    others = thread_busy(observed) - busy
    own = others + rate * PARENT_SECONDS
    child = busy + rate * CHILD_SECONDS
    return Lines(processes, own, child / processes, (own + child) / cores)


def gain_of(lines: Lines, busy: float) -> float:
    """Times as many tuples per second. ``busy``: share of the time in which the one thread is busy now; the rest is
    not the topology's, and stays."""
    rest = max(0.0, 1.0 - min(1.0, busy))
    return 1.0 / max(1e-9, rest + lines.longest)


def thread_busy(observed: Observed) -> float:
    """Of the task's own thread, under ``inline``."""
    return sum(each.link if each.processes else observed.busy(each) for each in observed.components)


def without_processes(bolt: ComponentProgress, observed: Observed) -> float:
    """Share of the time in which the one thread would be busy if the bolt had no processes, at most."""
    return thread_busy(observed) - bolt.link + bolt.capacity * bolt.processes
