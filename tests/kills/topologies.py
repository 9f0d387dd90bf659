"""The topologies whose processes are killed: numbers, doubled one by one, and summed up by group when a batch drains;
numbers of a spout without offsets, and of one that reads pages from a cursor on; numbers that are counted by key, in a
stage that keeps states between two others.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from pystorm_source import (
    BatchingBolt,
    Bolt,
    CursorSpout,
    Grouping,
    PartitionedSpout,
    Spout,
    StatefulBolt,
    Stream,
    Topology,
)
from tests.kills.processes import parent_of
from tests.markers import is_first

BEFORE_EMIT = "before emit"
AFTER_EMIT = "after emit, before ack"
MID_DRAIN = "in mid-drain"
BEFORE_FLUSH = "before journal flush"
AFTER_FLUSH = "after flush, before trim"
BEFORE_READ = "before a page is read"
BEFORE_CUT = "before the cut"
BEFORE_STATE = "with a state, before emit"
AFTER_STATE = "with a state, after emit"
BEHIND_STATE = "behind the states"
GROUPS = 5
KEYS = 37
PATIENCE = 60.0


class Kills:
    """Those of a query, each once: the files ``begun`` and ``happened`` in a kill's folder say how far it is."""

    def __init__(self, conf: dict):
        self.kills = [Kill(**given) for given in conf["kills.kills"]]

    def at(self, point: str, partition: str, *numbers: int) -> None:
        """A component is at that point with these numbers: a process that is to die there dies."""
        for kill in self.kills:
            if (kill.point, kill.partition) == (point, partition) and kill.n in numbers:
                kill.come()


@dataclass
class Kill:
    """What dies where. ``folder``: of its markers."""

    folder: str
    victim: str
    point: str
    partition: str
    n: int

    def come(self) -> None:
        if self.is_first("begun"):
            self.happen()
        elif self.victim == "twin" and not self.marker("gave up").exists():
            self.is_first("happened")  # the other attempt is there and waits for this one

    def marker(self, name: str) -> Path:
        return Path(self.folder) / name

    def is_first(self, marker: str) -> bool:
        return is_first(self.marker(marker))

    def happen(self) -> None:
        if self.victim == "twin":
            self.wait("happened")
            return
        self.is_first("happened")
        if self.victim == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.victim == "executor":
            os.kill(executor_of_this_worker(), signal.SIGKILL)
            # It dies with its JVM, some milliseconds later. Else it would go on meanwhile, past the point: at times to
            # the one gap that a journal leaves, between its manifest and the last ack, whose tuples come once more.
            self.wait("never")
        else:
            self.wait("never")  # the driver's killer has seen the marker; this worker must end by itself

    def wait(self, marker: str) -> None:
        end = time.monotonic() + PATIENCE
        while not self.marker(marker).exists():
            if time.monotonic() > end:
                self.is_first("gave up")
                raise TimeoutError(f"{PATIENCE} seconds are over and what was to happen did not: {self.victim}")
            time.sleep(0.01)


def executor_of_this_worker() -> int:
    """The JVM above the daemon above this process. Raises RuntimeError if that is no executor of its own."""
    jvm = parent_of(os.getppid())
    command = Path(f"/proc/{jvm}/cmdline").read_bytes()
    if b"CoarseGrainedExecutorBackend" not in command:
        raise RuntimeError(f"the worker's JVM is no executor. Given: {command[:200]!r}")
    return jvm


class Numbers(PartitionedSpout):
    """``kills.total`` offsets in each of two partitions."""

    outputs = ["partition string", "n long"]

    def initialize(self, conf, context):
        self.total = conf["kills.total"]

    def partitions(self):
        return ["a", "b"]

    def latest(self, partition):
        return self.total

    def open(self, partition, start, end):
        self.partition, self.n, self.end = partition, start, end

    def next_tuple(self):
        if self.n == self.end:
            return False
        self.emit((self.partition, self.n), self.n)
        self.n += 1


class Twice(Bolt):
    """Fails every seventh number, with all that it has emitted for it, when it sees it first."""

    outputs = ["partition string", "n long", "value long", Stream(["partition string", "n long"], name="grouped")]

    def initialize(self, conf, context):
        self.kills = Kills(conf)
        self.failed = set()

    def process(self, tup):
        partition, n = tup.values
        self.kills.at(BEFORE_EMIT, partition, n)
        self.emit((partition, n, 2 * n))
        self.emit((partition, n), stream="grouped")
        self.kills.at(AFTER_EMIT, partition, n)
        if n % 7 == 3 and (partition, n) not in self.failed:
            self.failed.add((partition, n))
            self.fail(tup)


class Sums(BatchingBolt):
    """Holds its tuples until the micro-batch drains."""

    outputs = ["partition string", "n long", "value long"]

    def initialize(self, conf, context):
        self.kills = Kills(conf)

    def group_key(self, tup):
        return tup.values.n % GROUPS

    def process_batch(self, key, tups):
        partition = tups[0].values.partition
        numbers = sorted({tup.values.n for tup in tups})  # of a number that has failed, both attempts may be here
        self.emit((partition, key, sum(numbers)))
        self.kills.at(MID_DRAIN, partition, *numbers)


class Killed(Topology):
    config = {"topology.lint.off": "batch-without-ticks"}

    numbers = Numbers.spec()
    twice = Twice.spec(inputs=[numbers], par=2)
    sums = Sums.spec(inputs=[twice["grouped"]])


class Broker(Spout):
    """``kills.total`` numbers without offsets; each is delivered again, to every client that asks, until it is acked.

    The file ``acked`` below ``kills.broker`` holds what is, a number a line.
    """

    outputs = ["partition string", "n long"]

    def initialize(self, conf, context):
        self.kills = Kills(conf)
        self.total = conf["kills.total"]
        self.acked = Path(conf["kills.broker"], "acked")

    def activate(self):
        acked = set(self.acked.read_text().split()) if self.acked.exists() else set()
        self.left = iter([n for n in range(self.total) if str(n) not in acked])

    def next_tuple(self):
        n = next(self.left, None)
        if n is not None:
            self.emit(("a", n), tup_id=n)
            self.kills.at(BEFORE_FLUSH, "a", n)

    def ack(self, tup_id):
        with self.acked.open("a") as acked:
            acked.write(f"{tup_id}\n")


class Once(Bolt):
    """What comes here is in the journal, which is trimmed behind the next micro-batch."""

    outputs = ["partition string", "n long", "value long"]

    def initialize(self, conf, context):
        self.kills = Kills(conf)

    def process(self, tup):
        partition, n = tup.values
        self.kills.at(AFTER_FLUSH, partition, n)
        self.emit((partition, n, 2 * n))


class KilledJournal(Topology):
    broker = Broker.spec()
    once = Once.spec(inputs=[broker])


class Feed(CursorSpout):
    """``kills.total`` numbers, seven a page. The file ``acked`` below ``kills.broker``: the end was reached."""

    outputs = ["partition string", "n long"]
    page_rows = 7

    def initialize(self, conf, context):
        self.kills = Kills(conf)
        self.total = conf["kills.total"]
        self.end = Path(conf["kills.broker"], "acked")

    def read(self, cursor, limit):
        start = cursor or 0
        numbers = range(start, min(start + limit, self.total))
        self.kills.at(BEFORE_FLUSH, "a", *numbers)
        if start == self.total:
            self.end.write_text("\n".join(map(str, range(self.total))))
        return [("a", n) for n in numbers], start + len(numbers)


class KilledFeed(Topology):
    feed = Feed.spec()
    once = Once.spec(inputs=[feed])


class Pages(CursorSpout):
    """``kills.total`` numbers, six a page, which stay as they are. Dies only in a task, where pages are read again."""

    outputs = ["partition string", "n long"]
    page_rows = 6
    replayable = True

    def initialize(self, conf, context):
        self.kills = Kills(conf) if context["place"] == "task" else None
        self.total = conf["kills.total"]

    def read(self, cursor, limit):
        start = cursor or 0
        numbers = range(start, min(start + limit, self.total))
        if self.kills is not None:
            self.kills.at(BEFORE_READ, "a", *numbers)
        return [("a", n) for n in numbers], start + len(numbers)


class Doubled(Bolt):
    """Fails every seventh number when it sees it first."""

    outputs = ["partition string", "n long", "value long"]

    def initialize(self, conf, context):
        self.kills = Kills(conf)
        self.failed = set()

    def process(self, tup):
        partition, n = tup.values
        self.kills.at(BEFORE_EMIT, partition, n)
        self.emit((partition, n, 2 * n))
        self.kills.at(AFTER_EMIT, partition, n)
        if n % 7 == 3 and n not in self.failed:
            self.failed.add(n)
            self.fail(tup)


class KilledPages(Topology):
    pages = Pages.spec()
    doubled = Doubled.spec(inputs=[pages])


class Keyed(Bolt):
    """Before the cut. Fails every seventh number when it sees it first, as all bolts here do."""

    outputs = ["key long", "partition string", "n long"]
    point = BEFORE_CUT

    def initialize(self, conf, context):
        self.kills = Kills(conf)
        self.failed = set()

    def process(self, tup):
        partition, n = tup.values
        self.emit((n % KEYS, partition, n))
        self.passes(tup, partition, n)

    def passes(self, tup, partition, n):
        self.kills.at(self.point, partition, n)
        if n % 7 == 3 and (partition, n) not in self.failed:
            self.failed.add((partition, n))
            self.fail(tup)


class Counts(StatefulBolt):
    """Counts the numbers of a key over all micro-batches."""

    outputs = ["key long", "partition string", "n long", "count long"]
    state_fields = ["count long", "last array<long>"]

    initialize = Keyed.initialize
    passes = Keyed.passes
    point = AFTER_STATE

    def process(self, tup):
        key, partition, n = tup.values
        self.state.count = (self.state.count or 0) + 1
        self.state.last = [*(self.state.last or [])[-3:], n]
        self.kills.at(BEFORE_STATE, partition, n)
        self.emit((key, partition, n, self.state.count))
        self.passes(tup, partition, n)


class Behind(Keyed):
    """A stage of its own: what fails here counts nothing twice there."""

    outputs = ["key long", "count long"]
    point = BEHIND_STATE

    def process(self, tup):
        key, partition, n, count = tup.values
        self.emit((key, count))
        self.passes(tup, partition, n)


class KilledStates(Topology):
    numbers = Numbers.spec()
    keyed = Keyed.spec(inputs=[numbers])
    counts = Counts.spec(inputs={keyed: Grouping.fields("key")}, par=2)
    behind = Behind.spec(inputs=[counts])
