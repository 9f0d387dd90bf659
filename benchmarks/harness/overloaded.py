"""A topology with more load than it can handle: arrivals, and the time for a tuple, follow the wall clock.

The load begins when the time is written into the file ``overload.clock``. Until then, a few waiting tuples let Spark's
processes start.
"""

import math
import time
from pathlib import Path
from typing import Any

from pystorm_source.api import Bolt, PartitionedSpout, Topology

STARTING = 50
"""Tuples per partition that wait from the beginning."""
AHEAD = 0.002
"""Seconds that a bolt may be ahead before it waits, or behind and catch up."""


def begun(conf: dict[str, Any]) -> float | None:
    """Returns when the load began, in seconds since 1970; None before."""
    try:
        return float(Path(conf["overload.clock"]).read_text())
    except (OSError, ValueError):  # missing, or being written
        return None


def service_rate(conf: dict[str, Any], elapsed: float) -> float:
    """Returns the tuples per second of one slot, ``elapsed`` seconds after the load began: from ``overload.rate`` down
    to a quarter and back over ``overload.seconds``."""
    best: float = conf["overload.rate"]
    return best * 4 ** (-0.5 + 0.5 * math.cos(2 * math.pi * elapsed / conf["overload.seconds"]))


class ArrivingSpout(PartitionedSpout):
    """``overload.arriving`` tuples per second and partition."""

    outputs = ["part string", "n long"]
    poll_seconds = 0.0  # arrivals follow the clock

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.conf = conf

    def partitions(self) -> list[str]:
        return [f"{number:02d}" for number in range(self.conf["overload.partitions"])]

    def latest(self, partition: str) -> int:
        since = begun(self.conf)
        return STARTING + (0 if since is None else int((time.time() - since) * self.conf["overload.arriving"]))

    def open(self, partition: str, start: int, end: int) -> None:
        self.partition, self.offset, self.end = partition, start, end

    def next_tuple(self) -> bool | None:
        offset = self.offset
        if offset == self.end:
            return False
        self.emit((self.partition, offset), offset)
        self.offset = offset + 1
        return None


class WaitBolt(Bolt):
    """Takes as long for a tuple as ``service_rate`` says, including the engine's own time."""

    outputs = ["n long"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.conf = conf
        self.free = 0.0
        self.since: float | None = None

    def process(self, tup: Any) -> None:
        now = time.perf_counter()
        _, n = tup.values
        if self.since is None:
            self.since = begun(self.conf)
        elapsed = 0.0 if self.since is None else time.time() - self.since
        self.free = max(self.free, now - AHEAD) + 1 / service_rate(self.conf, elapsed)
        if self.free > now + AHEAD:
            time.sleep(self.free - now)
        self.emit((n,))


class Overloaded(Topology):
    """Spout → bolt → rows."""

    arriving = ArrivingSpout.spec()
    waits = WaitBolt.spec(inputs=[arriving])
