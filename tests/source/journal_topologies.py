"""Topologies of plain spouts for the journal's tests. The world is the folder ``path``."""

import json
import os
import signal
import uuid
from pathlib import Path

from pystorm_source.api import ArrowBolt, Bolt, Grouping, PartitionedSpout, ReliableSpout, Spout, Stream, Topology
from pystorm_source.spouts import SocketSpout
from tests.markers import is_first


class BrokerSpout(Spout):
    """A broker that delivers a message again to each new client, until it is acked: ``messages``, a number a line."""

    outputs = ["n long", "delivery string"]

    def initialize(self, conf, context):
        self.folder = Path(conf["path"])
        self.manifests = Path(conf.get("journal.path", "/nowhere"))
        acked = {json.loads(line)[1] for line in self.log("ack")}
        numbers = [int(line) for line in (self.folder / "messages").read_text().split()]
        self.left = [n for n in numbers if n not in acked]
        self.delivery = uuid.uuid4().hex

    def log(self, *verdicts):
        path = self.folder / "verdicts.log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if json.loads(line)[0] in verdicts]

    def next_tuple(self):
        if self.left:
            n = self.left.pop(0)
            self.emit((n, self.delivery), tup_id=n)

    def ack(self, tup_id):
        settled = len(list(self.manifests.glob("**/*.manifest")))
        self.say("ack", tup_id, settled)

    def fail(self, tup_id):
        self.say("fail", tup_id, 0)

    def say(self, verdict, tup_id, settled):
        with (self.folder / "verdicts.log").open("a") as log:
            log.write(json.dumps([verdict, tup_id, settled]) + "\n")


class Messages(Topology):
    """Spout → rows."""

    messages = BrokerSpout.spec()


class StumblingBolt(Bolt):
    """Raises for 3 while the file ``stumble`` is there, which it removes."""

    outputs = ["n long", "delivery string"]

    def initialize(self, conf, context):
        self.stone = Path(conf["path"]) / "stumble"

    def process(self, tup):
        if tup.values[0] == 3 and self.stone.exists():
            self.stone.unlink()
            raise ZeroDivisionError("three")
        self.emit(tup.values)


class Stumbling(Topology):
    messages = BrokerSpout.spec()
    through = StumblingBolt.spec(inputs=[messages])


class StumblingBatchBolt(ArrowBolt):
    """The same for a batch with 3 in it."""

    outputs = ["n long", "delivery string"]
    exit_on_exception = False
    initialize = StumblingBolt.initialize

    def process_batch(self, batch):
        if 3 in batch.column(0).to_pylist() and self.stone.exists():
            self.stone.unlink()
            raise ZeroDivisionError("three")
        self.emit_batch(batch)


class InBatches(Topology):
    messages = BrokerSpout.spec()
    through = StumblingBatchBolt.spec(inputs=[messages])


class LooseSpout(Spout):
    """Emits without ids, and nothing can be read again: ``n`` counts what this process has taken from the file."""

    outputs = ["n long", "delivery string"]
    delivery = uuid.uuid4().hex

    def initialize(self, conf, context):
        self.lines = (Path(conf["path"]) / "messages").open()

    def next_tuple(self):
        line = self.lines.readline()
        if line:
            self.emit((int(line), self.delivery))

    def cleanup(self):
        self.lines.close()


class Loose(Topology):
    messages = LooseSpout.spec()


class TwoStreamsSpout(Spout):
    """``even`` and ``odd`` in turn, untyped values among them, three emits a call."""

    outputs = [Stream(["n long", "more"], name="even"), Stream(["n long"], name="odd")]

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        for _ in range(3):
            if self.n % 2:
                self.emit((self.n,), stream="odd")
            else:
                self.emit([self.n, {"half": self.n // 2, "list": (1, 2)}], stream="even")
            self.n += 1


class OrderBolt(Bolt):
    outputs = ["n long", "more string"]

    def process(self, tup):
        more = json.dumps(tup.values[1]) if tup.stream == "even" else tup.stream
        self.emit((tup.values[0], more))


class TwoStreams(Topology):
    numbers = TwoStreamsSpout.spec()
    ordered = OrderBolt.spec(inputs={numbers["even"]: Grouping.SHUFFLE, numbers["odd"]: Grouping.SHUFFLE})


class TokenSpout(Spout):
    """No two instances emit alike. ``par`` counts."""

    outputs = ["token string"]

    def initialize(self, conf, context):
        self.token = uuid.uuid4().hex

    def next_tuple(self):
        self.emit((self.token,))


class Tokens(Topology):
    tokens = TokenSpout.spec()


class PairOfTokens(Topology):
    tokens = TokenSpout.spec(par=2)


class ResendingSpout(ReliableSpout):
    """Emits 0 to 9 once; what fails, it emits again by itself."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.left = list(range(10))

    def next_tuple(self):
        if self.left:
            n = self.left.pop(0)
            self.emit((n,), tup_id=n)


class Resending(Topology):
    numbers = ResendingSpout.spec()


class AskingSpout(Spout):
    outputs = ["n long"]

    def next_tuple(self):
        self.emit((1,), need_task_ids=True)


class Asking(Topology):
    numbers = AskingSpout.spec()


class SurvivingSpout(Spout):
    """Every second call raises."""

    outputs = ["n long"]
    exit_on_exception = False

    def initialize(self, conf, context):
        self.n = 0

    def next_tuple(self):
        self.n += 1
        if self.n % 2:
            raise ValueError("odd")
        self.emit((self.n,))


class Surviving(Topology):
    numbers = SurvivingSpout.spec()


class SocketLines(Topology):
    lines = SocketSpout.spec()


class FailingBolt(Bolt):
    """Fails 3 for ever."""

    outputs = ["n long", "delivery string"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values[0] == 3:
            raise ZeroDivisionError("three")
        self.emit(tup.values)


class Failing(Topology):
    messages = BrokerSpout.spec()
    through = FailingBolt.spec(inputs=[messages])


class SquaresSpout(PartitionedSpout):
    outputs = ["square long"]

    def partitions(self):
        return ["all"]

    def latest(self, partition):
        return 1000

    def open(self, partition, start, end):
        self.offsets = iter(range(start, end))

    def next_tuple(self):
        for n in self.offsets:
            self.emit([n * n], tup_id=n)
            return True
        return False


class WithSquares(Topology):
    messages = BrokerSpout.spec()
    squares = SquaresSpout.spec()


class MeetingSpout(Spout):
    """Emits number k + 1 when the bolt has seen k, which the micro-batch before has emitted; and ends its own
    micro-batch then. So it waits in vain unless both are at work at once. The folder ``path`` holds what was seen."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.folder = Path(conf["path"])

    def activate(self):
        self.n = sum(1 for _ in self.folder.glob("emitted-*"))
        self.has_emitted = False

    def next_tuple(self):
        if self.has_emitted:
            return False
        if self.n == 0 or (self.folder / f"seen-{self.n - 1}").exists():
            self.emit((self.n,), tup_id=self.n)
            self.has_emitted = True

    def ack(self, tup_id):
        (self.folder / f"emitted-{tup_id}").touch()


class SeeingBolt(Bolt):
    outputs = ["n long"]

    def initialize(self, conf, context):
        self.folder = Path(conf["path"])

    def process(self, tup):
        (self.folder / f"seen-{tup.values[0]}").touch()
        self.emit(tup.values)


class Meeting(Topology):
    numbers = MeetingSpout.spec()
    seen = SeeingBolt.spec(inputs=[numbers])


class KilledSpout(BrokerSpout):
    """Kills its process at message 10, once, when it has emitted it. No client gets what another one has acked."""

    def activate(self):
        self.initialize({"path": self.folder, "journal.path": self.manifests}, {})

    def next_tuple(self):
        super().next_tuple()
        if self.left and self.left[0] == 11:
            die_once(self.folder / "spout killed")


class KilledBolt(Bolt):
    """Kills its process at message 4, once."""

    outputs = ["n long", "delivery string"]

    def initialize(self, conf, context):
        self.folder = Path(conf["path"])

    def process(self, tup):
        if tup.values[0] == 4:
            die_once(self.folder / "bolt killed")
        self.emit(tup.values)


def die_once(marker):
    if is_first(marker):
        os.kill(os.getpid(), signal.SIGKILL)


class Killed(Topology):
    messages = KilledSpout.spec()
    through = KilledBolt.spec(inputs=[messages])


class RenamingSpout(BrokerSpout):
    outputs = ["number long", "delivery string"]


class Renamed(Topology):
    messages = RenamingSpout.spec()
