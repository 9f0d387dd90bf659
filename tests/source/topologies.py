"""Topologies that the tests run, here and in Spark's processes. They read a folder with a file per partition."""

import datetime
import decimal
import gc
import json
import os
import signal
import threading
import time
from pathlib import Path

from pystorm_source.api import Bolt, Grouping, PartitionedSpout, Snapshot, Spout, Stream, Topology
from pystorm_source.exceptions import Hopeless, RetryLater
from pystorm_source.options import Options
from pystorm_source.spouts import FilesSpout
from tests.markers import is_first


class NumberSpout(PartitionedSpout):
    """Partition p of the folder ``path`` is the file p: JSON [earliest, latest]. Offset i is the number i."""

    outputs = ["part string", "n long"]
    poll_seconds = 0.0

    def initialize(self, conf, context):
        self.folder = Path(conf["path"])
        self.place = context["place"]

    def partitions(self):
        return sorted(path.name for path in self.folder.iterdir() if path.suffix == "")

    def earliest(self, partition):
        return json.loads((self.folder / partition).read_text())[0]

    def latest(self, partition):
        return json.loads((self.folder / partition).read_text())[1]

    def commit(self, offsets):
        with (self.folder / "committed.log").open("a") as log:
            log.write(json.dumps(offsets) + "\n")

    def cleanup(self):
        if self.place == "driver":
            (self.folder / "cleaned.log").touch()

    def open(self, partition, start, end):
        self.partition, self.at, self.end = partition, start, end

    def next_tuple(self):
        if self.at >= self.end:
            return False
        self.emit((self.partition, self.at), tup_id=self.at)
        self.at += 1
        return True


class DoubleBolt(Bolt):
    outputs = ["part string", "twice long"]

    def process(self, tup):
        part, n = tup.values
        self.emit((part, 2 * n))


class FrozenBolt(Bolt):
    outputs = ["frozen long"]

    def process(self, tup):
        self.emit([gc.get_freeze_count()])


class SumBolt(Bolt):
    """Two open streams, ``odd`` and ``even``, that share the column n."""

    outputs = [Stream(["n long", "half double"], name="even"), Stream(["n long", "text string"], name="odd")]

    def process(self, tup):
        n = tup.values[1]
        if n % 2:
            self.emit((n, str(n)), stream="odd")
        else:
            self.emit((n, n / 2), stream="even")


class Numbers(Topology):
    """Spout → rows."""

    numbers = NumberSpout.spec()


class Doubled(Topology):
    """Spout → two tasks of a bolt → rows."""

    numbers = NumberSpout.spec()
    doubled = DoubleBolt.spec(inputs={numbers: Grouping.fields("part")}, par=2)


class Collected(Topology):
    """Spout → objects of the process that the garbage collector does not look at."""

    numbers = NumberSpout.spec()
    frozen = FrozenBolt.spec(inputs=[numbers])


class Joined(Topology):
    """Two spouts whose tuples of equal keys are to come together."""

    numbers = NumberSpout.spec()
    others = NumberSpout.spec()
    joined = DoubleBolt.spec(inputs={numbers: Grouping.fields("part"), others: Grouping.fields("part")})


class ByEnvironment(Topology):
    """More tasks in one environment than in the other."""

    numbers = NumberSpout.spec(par={"prod": 3, "beta": 2})


class Parted(Topology):
    """Spout → bolt with two open streams."""

    numbers = NumberSpout.spec()
    parted = SumBolt.spec(inputs=[numbers])


class UntypedBolt(Bolt):
    outputs = ["part", "n"]

    def process(self, tup):
        self.emit(list(tup.values))


class Untyped(Topology):
    """The open stream declares no types."""

    numbers = NumberSpout.spec()
    untyped = UntypedBolt.spec(inputs=[numbers])


class ClashingBolt(Bolt):
    outputs = [Stream(["n string"], name="one"), Stream(["n long"], name="two")]

    def process(self, tup):
        self.emit(("1",), stream="one")


class Clashing(Topology):
    """Two open streams declare one column with two types."""

    numbers = NumberSpout.spec()
    clashing = ClashingBolt.spec(inputs=[numbers])


class MisspelledBolt(Bolt):
    outputs = ["n lnog"]

    def process(self, tup):
        self.emit((1,))


class Misspelled(Topology):
    """A type that is none."""

    numbers = NumberSpout.spec()
    misspelled = MisspelledBolt.spec(inputs=[numbers])


class LeafBolt(Bolt):
    def process(self, tup):
        pass


class Closed(Topology):
    """Nothing leaves it."""

    numbers = NumberSpout.spec()
    leaf = LeafBolt.spec(inputs=[numbers])


class PickyBolt(Bolt):
    """Passes every number on, then raises over every fifth from 3 on."""

    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        self.emit((tup.values.n,))
        if tup.values.n % 5 == 3:
            raise ValueError(f"not {tup.values.n}")


class Picky(Topology):
    """Some of its tuples fail for good."""

    numbers = NumberSpout.spec()
    picky = PickyBolt.spec(inputs=[numbers])


class TombBolt(Bolt):
    outputs = ["epitaph string"]

    def process(self, tup):
        self.emit((f"{tup.values.values} {tup.values.attempts} {tup.values.reason}",))


class Buried(Topology):
    """Its dead letters go to a bolt."""

    config = {"topology.dead.letter": "stream", "topology.max.spout.retries": 0}
    numbers = NumberSpout.spec()
    picky = PickyBolt.spec(inputs=[numbers])
    tombs = TombBolt.spec(inputs=[numbers["__dead_letter"]])


class TickSpout(Spout):
    """A spout without offsets."""

    outputs = ["tick long"]

    def initialize(self, conf, context):
        self.ticks = 0

    def next_tuple(self):
        self.emit((self.ticks,))
        self.ticks += 1


class Ticks(Topology):
    ticks = TickSpout.spec()


class LoadOptions(Options, frozen=True, kw_only=True):
    """Options of a spout of its own."""

    step: int = 1
    location: str = ""


class OptionSpout(NumberSpout):
    Options = LoadOptions


class WithOptions(Topology):
    numbers = OptionSpout.spec()


class NotingSpout(NumberSpout):
    """Drops partitions that are read and named ``*_done``, and notes the last of them, as a follower of files does."""

    def snapshot(self, known, state):
        heads = {name: (self.earliest(name), self.latest(name)) for name in self.partitions()}
        done = state.get("done", "")
        over = {name for name in heads if name.endswith("_done") and name <= done and name not in known}
        retired = {name for name, at in known.items() if name.endswith("_done") and heads.get(name, (0, 0))[1] <= at}
        notes = {"done": max([done, *(name for name in heads if name.endswith("_done"))])}
        return Snapshot({n: h for n, h in heads.items() if n not in over | retired}, notes, frozenset(retired))


class Noting(Topology):
    numbers = NotingSpout.spec()


class AskedSpout(NumberSpout):
    """Is asked once a second, and counts it: a byte of ``asked.log`` each time."""

    poll_seconds = 1.0

    def partitions(self):
        with (self.folder / "asked.log").open("ab") as log:
            log.write(b".")
        return super().partitions()


class Polled(Topology):
    numbers = AskedSpout.spec()


class PolledAndNot(Topology):
    numbers = AskedSpout.spec()
    others = NumberSpout.spec()


class BusySpout(NumberSpout):
    """Its source is busy in the methods that ``busy.json`` names: seconds that it asks for, or the class of an error.
    Counts its calls in ``calls.log``."""

    poll_seconds = 1.0

    def ask(self, method):
        with (self.folder / "calls.log").open("a") as log:
            log.write(f"{method}\n")
        control = self.folder / "busy.json"
        answer = json.loads(control.read_text()).get(method) if control.exists() else None
        if isinstance(answer, str):
            raise {"ConnectionError": ConnectionError, "Hopeless": Hopeless}[answer]("429 Too Many Requests")
        if answer is not None:
            raise RetryLater(answer, "429 Too Many Requests")

    def partitions(self):
        self.ask("partitions")
        return super().partitions()

    def earliest(self, partition):
        self.ask("earliest")
        return super().earliest(partition)

    def latest(self, partition):
        self.ask("latest")
        return super().latest(partition)

    def commit(self, offsets):
        self.ask("commit")
        super().commit(offsets)

    def open(self, partition, start, end):
        self.ask("open")
        super().open(partition, start, end)

    def next_tuple(self):
        if self.at == self.end:
            return False
        if self.at % 4 == 3:  # in the middle of a range
            self.ask("next_tuple")
        return super().next_tuple()


class BusyAndNot(Topology):
    numbers = BusySpout.spec()
    others = NumberSpout.spec()


class Busy(Topology):
    numbers = BusySpout.spec()


class LedgerSpout(NumberSpout):
    """Says that all is over, and notes what is read, once it is told so: what it neither notes nor knows is new."""

    poll_seconds = 1.0

    def snapshot(self, known, state):
        notes = {**state, **{name: "read" for name, at in known.items() if at == self.latest(name)}}
        heads = {name: (0, self.latest(name)) for name in self.partitions() if name in known or name not in state}
        return Snapshot(heads, notes, frozenset(heads))


class Ledger(Topology):
    numbers = LedgerSpout.spec()


class TensSpout(NumberSpout):
    """Can be cut at multiples of ten only."""

    def align(self, partition, start, end):
        return end // 10 * 10 if end // 10 * 10 > start else min((end // 10 + 1) * 10, self.latest(partition))

    def split(self, partition, start, end, parts):
        return list(range(start // 10 * 10 + 10, end, 10))[: parts - 1]


class Tens(Topology):
    numbers = TensSpout.spec()


class FailOnceOptions(Options, frozen=True, kw_only=True):
    how: str = "raise"


class FailOnceBolt(Bolt):
    """Fails as the option ``how`` says at the tuple 7, the first time that anyone gets there, or ``always``."""

    Options = FailOnceOptions
    outputs = ["part string", "n long"]

    def initialize(self, conf, context):
        self.mark = Path(conf["path"]) / "failed.log"
        self.how = conf.get("how", "raise")

    def process(self, tup):
        if tup.values[1] == 7 and (self.how == "always" or is_first(self.mark)):
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "fail":
                self.fail(tup)
                return
            raise RuntimeError("the first time")
        self.emit(list(tup.values))


class SleepyBolt(Bolt):
    """Takes 2 ms for a tuple."""

    outputs = ["part string", "n long"]

    def process(self, tup):
        time.sleep(0.002)
        self.emit(tup.values)


class Sleepy(Topology):
    """Does 500 tuples a second in each task."""

    numbers = NumberSpout.spec()
    sleepy = SleepyBolt.spec(inputs=[numbers])


class FailsOnce(Topology):
    numbers = NumberSpout.spec()
    once = FailOnceBolt.spec(inputs=[numbers])


class SlowSpout(NumberSpout):
    """Stands still at offset 5, the first time that anyone gets there."""

    def next_tuple(self):
        mark = self.folder / "slow.log"
        if self.at == 5 and is_first(mark):
            time.sleep(600)
        return super().next_tuple()


class Slow(Topology):
    numbers = SlowSpout.spec()


KINDS = {
    "flag boolean": True,
    "tiny tinyint": -128,
    "small smallint": 32767,
    "whole int": 2**31 - 1,
    "big bigint": -(2**63),
    "single float": 0.5,
    "double double": 1e300,
    "text string": "zażółć 🌩",
    "raw binary": b"\x00\xff",
    "day date": datetime.date(1969, 7, 20),
    "moment timestamp": datetime.datetime(2024, 2, 29, 12, 30, 0, 123456),
    "local timestamp_ntz": datetime.datetime(1900, 1, 1, 0, 0, 0, 1),
    "span interval day to second": datetime.timedelta(days=-1, microseconds=1),
    "price decimal(20,3)": decimal.Decimal("12345678901234567.125"),
    "list array<int>": [1, None, 3],
    "lists array<array<string>>": [["a"], [], None],
    "counts map<string,bigint>": {"a": 1, "b": None},
    "pair struct<x: int, y: struct<z: string>>": (1, ("deep",)),
    "sure string not null": "always",
}


class KindsSpout(NumberSpout):
    """Offset 0 has a value of every type, offset 1 a null wherever one may be, and so on in turn."""

    outputs = list(KINDS)

    def next_tuple(self):
        if self.at >= self.end:
            return False
        full = self.at % 2 == 0
        values = [value if full or "not null" in field else None for field, value in KINDS.items()]
        self.emit(values, tup_id=self.at)
        self.at += 1
        return True


class Kinds(Topology):
    kinds = KindsSpout.spec()


class Lines(Topology):
    lines = FilesSpout.spec()


class ThreadNameBolt(Bolt):
    """The number, and whose thread it was seen by."""

    outputs = ["part string", "n long", "thread string"]

    def process(self, tup):
        self.emit((*tup.values, threading.current_thread().name))


class ThreadNames(Topology):
    numbers = NumberSpout.spec()
    named = ThreadNameBolt.spec(inputs=[numbers])
