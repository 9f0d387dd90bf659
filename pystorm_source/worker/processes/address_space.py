"""The memory that a Python worker of Spark may use, divided among it and its children.

``spark.executor.pyspark.memory`` becomes a limit (RLIMIT_AS) on what a process has mapped, used or not. A child
inherits the limit and shares the memory that its parent has mapped and uses: a fork takes no memory. So memory in use
exists once, and only the rest of the limit is divided:

    limit ─┬─ in use before the fork: counts in each process
           └─ the rest: one part for each child, and one for the parent

Each process may map its part in addition to what it has mapped already, up to the limit. Together they then use no more
than one process might. Mapped but unused memory does not reduce the parts: Arrow reserves 1 GiB and uses little of it.
Dividing the limit itself would leave each process less than is mapped at the fork.
"""

import contextlib
import os
import sys

if sys.platform != "win32":  # Windows has no children
    import resource

MIB = 1 << 20

LEAST_ROOM = 16 * MIB
"""Room for a child. Less: it ends before it can say why. More: a sufficient limit is refused."""

_given = 0  # bytes: parts of the children of all workers in this process


def _pages() -> tuple[int, int]:
    """Bytes that this process has mapped, and bytes that it uses."""
    with open("/proc/self/statm") as file:
        mapped, used = file.read().split()[:2]
    size = os.sysconf("SC_PAGE_SIZE")
    return int(mapped) * size, int(used) * size


class AddressSpace:
    """The parts of ``children`` processes. Divides nothing without a readable limit. Raises MemoryError if there is not
    enough room for a child."""

    def __init__(self, children: int):
        self.part: int | None = None  # bytes
        self._children = children
        self._taken = self._given = 0
        if sys.platform == "win32":
            return
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY:
            return
        with contextlib.suppress(OSError, ValueError):
            mapped, used = _pages()
            limit = soft if hard == resource.RLIM_INFINITY else hard
            self.part = max(0, limit - used - _given) // (children + 1)
            if min(self.part, soft - mapped) < LEAST_ROOM:
                raise MemoryError

    def take(self) -> None:
        """In the parent, once all children exist: it keeps its own part."""
        global _given
        if self.part is None:
            return
        self._given = self.part * self._children
        _given += self._given
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        lower = min(soft, _pages()[0] + self.part)
        self._taken = soft - lower
        resource.setrlimit(resource.RLIMIT_AS, (lower, hard))

    def give_back(self) -> None:
        """In the parent, once they are gone. Workers of one process give back in any order."""
        global _given
        given, self._given = self._given, 0
        if not given:
            return
        _given -= given
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        higher = soft + self._taken
        resource.setrlimit(resource.RLIMIT_AS, (min(higher, hard) if hard != resource.RLIM_INFINITY else higher, hard))

    def bound(self) -> None:
        """In a child: limits it to its part beyond what it has mapped."""
        if self.part is not None:
            soft, _ = resource.getrlimit(resource.RLIMIT_AS)
            limit = min(soft, _pages()[0] + self.part)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def limit_in_words() -> str:
    """For messages: what this process may map, and the setting behind it; empty without a limit."""
    if sys.platform == "win32":
        return ""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return ""
    with contextlib.suppress(OSError, ValueError):
        return (
            f"process {os.getpid()} has mapped {_pages()[0] // MIB:,} MiB of the {soft // MIB:,} MiB that it may: the "
            "Python worker and the processes of its bolts share spark.executor.pyspark.memory"
        )
    return ""
