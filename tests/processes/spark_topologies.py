"""Topologies with a bolt in processes of its own, for Spark's Python processes to import."""

import os
import signal
import threading
import time
from pathlib import Path

from pystorm_source import BatchingBolt, Bolt, Grouping, Input, PartitionedSpout, StatefulBolt, Topology

TOTAL = 20_000


class Numbers(PartitionedSpout):
    outputs = ["n long"]
    total = TOTAL

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return self.total

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit((self.at,), self.at)
        self.at += 1


class Squares(Bolt):
    outputs = ["n long", "square long", "pid long", "parent long"]

    def initialize(self, conf, context):
        self.flag = conf.get("app.killed.once", "")

    def process(self, tup):
        n = tup.values.n
        if n == 7_777 and self.flag and os.path.exists(self.flag):
            os.unlink(self.flag)
            os.kill(os.getpid(), signal.SIGKILL)
        self.emit((n, n * n, os.getpid(), os.getppid()))


class HangingSquares(Squares):
    """At tuple 7777 a call does not return, as long as there is a file: in a loop, or because its process stops."""

    def initialize(self, conf, context):
        super().initialize({}, context)
        self.hangs, self.stops = conf["app.hangs"], conf["app.stops"]

    def process(self, tup):
        while tup.values.n == 7_777 and os.path.exists(self.hangs):
            if self.stops:
                os.kill(os.getpid(), signal.SIGSTOP)
        super().process(tup)


class Hanging(Topology):
    numbers = Numbers.spec()
    squares = HangingSquares.spec(inputs=[numbers], processes=2)


class HangingHere(Topology):
    numbers = Numbers.spec()
    squares = HangingSquares.spec(inputs=[numbers])


class Squared(Topology):
    numbers = Numbers.spec()
    squares = Squares.spec(inputs=[numbers], processes=2)


class SquaredRows(Topology):
    rows = Input.spec(["n long"])
    squares = Squares.spec(inputs=[rows], processes=2)


class Marks(Bolt):
    """Of a sink: a line for each row, in a file of its process."""

    def initialize(self, conf, context):
        self.path = Path(conf["app.marks"]) / f"{os.getppid()}-{os.getpid()}"

    def process(self, tup):
        with self.path.open("a") as file:
            file.write(f"{self.idempotency_key(tup)} {tup.values.n}\n")


class MarkedHere(Topology):
    rows = Input.spec(["n long"])
    marks = Marks.spec(inputs=[rows])


class Marked(Topology):
    rows = Input.spec(["n long"])
    marks = Marks.spec(inputs=[rows], processes=2)


def marks_of(folder):
    """(Key, n) of each line, and parent → its children."""
    found, families = [], {}
    for path in folder.iterdir():
        parent, child = path.name.split("-")
        families.setdefault(parent, set()).add(child)
        for line in path.read_text().splitlines():
            key, _, n = line.rpartition(" ")
            found.append((key, int(n)))
    return sorted(found, key=lambda mark: mark[1]), families


class Sums(BatchingBolt):
    outputs = ["key long", "total long", "pid long"]

    def group_key(self, tup):
        return tup.values.n % 7

    def process_batch(self, key, tups):
        self.emit((key, sum(tup.values.square for tup in tups), os.getpid()))


class Cut(Topology):
    """Processes on both sides of a cut."""

    numbers = Numbers.spec()
    squares = Squares.spec(inputs=[numbers], processes=2)
    sums = Sums.spec(inputs={squares: Grouping.fields("n")}, processes=2)


class CutHere(Topology):
    numbers = Numbers.spec()
    squares = Squares.spec(inputs=[numbers])
    sums = Sums.spec(inputs={squares: Grouping.fields("n")})


class Keyed(Bolt):
    outputs = ["key long", "n long"]

    def process(self, tup):
        self.emit((tup.values.n % 7, tup.values.n))


class Counts(StatefulBolt):
    outputs = ["key long", "total long"]
    state_fields = ["total long"]

    def process(self, tup):
        self.state.total = (self.state.total or 0) + 1
        self.emit((tup.values.key, self.state.total))


class Named(Bolt):
    outputs = ["key long", "total long", "pid long", "parent long"]

    def process(self, tup):
        self.emit((tup.values.key, tup.values.total, os.getpid(), os.getppid()))


class Kept(Topology):
    """Processes before a bolt with states, and behind it in the same stage."""

    numbers = Numbers.spec()
    keyed = Keyed.spec(inputs=[numbers], processes=2)
    counts = Counts.spec(inputs={keyed: Grouping.fields("key")})
    named = Named.spec(inputs=[counts], processes=2)


class Killed(Bolt):
    """Kills its process or the one above it, once over all processes, at a point that is drawn."""

    outputs = ["n long", "square long"]

    def initialize(self, conf, context):
        self.flag, self.victim, self.point, self.at = conf["app.fault"]
        self.kill("initialize")
        if self.point == "at some time":
            threading.Timer(self.at, self.kill, [self.point]).start()

    def kill(self, point, n=None):
        if point != self.point or (n is not None and n < self.at):
            return
        try:
            os.unlink(self.flag)
        except FileNotFoundError:
            return
        os.kill(os.getpid() if self.victim == "child" else os.getppid(), signal.SIGKILL)

    def process(self, tup):
        n = tup.values.n
        self.kill("process", n)
        if self.point == "at some time" and n % 8 == 0:
            time.sleep(0.001)
        self.emit((n, n * n))
        self.kill("behind an emit", n)

    def process_tick(self, tup):
        self.kill("process_tick")


class Fewer(Numbers):
    total = 6_000


def killed(par, processes):
    """A topology whose bolt kills."""

    class Drawn(Topology):
        numbers = Fewer.spec()
        squares = Killed.spec(inputs=[numbers], par=par, processes=processes)

    return Drawn


class InTwo(Numbers):
    """Two partitions of half as many."""

    total = 600

    def partitions(self):
        return ["p", "q"]


class Asks(Bolt):
    """Calls a service, which is a row of when that was. Kills its process once, in a call, if ``app.killed.once`` is
    there."""

    outputs = ["n long", "at double", "pid long", "parent long"]

    def initialize(self, conf, context):
        self.flag = conf.get("app.killed.once", "")

    def process(self, tup):
        with self.limit("api"):
            at = time.monotonic()
            if tup.values.n % 600 == 250 and self.flag and os.path.exists(self.flag):
                os.unlink(self.flag)
                os.kill(os.getpid(), signal.SIGKILL)
        self.emit((tup.values.n, at, os.getpid(), os.getppid()))


class Limited(Topology):
    config = {"topology.rate.limit": {"api": "200/s"}}
    numbers = InTwo.spec()
    asks = Asks.spec(inputs=[numbers], processes=2)


class LimitedRows(Topology):
    config = {"topology.rate.limit": {"api": "200/s"}}
    rows = Input.spec(["n long"])
    asks = Asks.spec(inputs=[rows], processes=2)
