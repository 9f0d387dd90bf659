"""A topology as a typed user writes it, with every kind of component; `mypy --strict` must find nothing in it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, assert_type

from pystorm_source import (
    BatchingBolt,
    Bolt,
    ComponentSpec,
    GlobalStreamId,
    Grouping,
    PartitionedSpout,
    ReliableSpout,
    Snapshot,
    Spout,
    Stream,
    TicklessBatchingBolt,
    Topology,
    Tuple,
)

PRICES = (10, 250, 40, 900)


class Orders(PartitionedSpout):
    """Orders of two shops, by number."""

    outputs = ["shop string", "number long", "price long"]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.total: int = conf.get("orders.total", 8)

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        return Snapshot(dict.fromkeys(("north", "south"), (0, self.total)), state)

    def open(self, partition: str, start: int, end: int) -> None:
        self.shop, self.at, self.end = partition, start, end

    def next_tuple(self) -> bool:
        if self.at == self.end:
            return False
        assert_type(self.emit([self.shop, self.at, PRICES[self.at % 4]], tup_id=self.at), None)
        self.at += 1
        return True


class Heartbeats(Spout):
    """One tuple, unreliable, with the task ids that got it."""

    outputs = [Stream(fields=["at long"], name="beats")]
    sent = False

    def next_tuple(self) -> None:
        if not self.sent:
            assert_type(self.emit([0], stream="beats", need_task_ids=True), list[int])
            self.sent = True


class Corrections(ReliableSpout):
    """Corrections that must arrive."""

    outputs = ["number long"]
    max_fails = 5

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.left = [3, 4]

    def next_tuple(self) -> None:
        if self.left:
            number = self.left.pop(0)
            self.emit([number], tup_id=number)

    def ack(self, tup_id: int) -> None:
        super().ack(tup_id)
        self.report_metric("corrected", 1)


class Alerts(Bolt):
    """Orders above the limit leave as alerts, broken ones as errors."""

    outputs = ["shop string", "price long", Stream(["reason string"], name="errors")]
    auto_ack = False

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.threshold = int(conf.get("alerts.limit", 200))
        self.ticks = 0

    def process(self, tup: Tuple) -> None:
        shop, _, price = tup.values
        if tup.values.price < 0:
            self.emit([f"negative: {tup.id}"], stream="errors", anchors=[tup])
            self.log(f"negative price from {tup.component}", level="warn")
            self.fail(tup)
            return
        if price > self.threshold:
            assert_type(self.emit([shop, price]), None)
        self.ack(tup)

    def process_tick(self, tup: Tuple) -> None:
        self.ticks += 1

    def cleanup(self) -> None:
        self.threshold = 0


class Turnover(BatchingBolt):
    """The turnover of each shop, batch by batch."""

    outputs = ["shop string", "turnover long"]
    ticks_between_batches = 0

    def group_key(self, tup: Tuple) -> str:
        return str(tup.values.shop)

    def process_batch(self, key: Any, tups: list[Tuple]) -> None:
        self.emit([key, sum(tup.values.price for tup in tups)])


class Quiet(TicklessBatchingBolt):
    """Counts what came, every second."""

    outputs: ClassVar[list[str]] = ["kind string", "n long"]
    secs_between_batches = 1

    def group_key(self, tup: Tuple) -> str:
        return tup.component

    def process_batch(self, key: Any, tups: list[Tuple]) -> None:
        kinds = Counter(tup.stream for tup in tups)
        for kind, n in kinds.items():
            self.emit([f"{key}.{kind}", n])


class ByParity:
    """A grouping of one's own."""

    def prepare(self, context: dict[str, Any], stream: GlobalStreamId, targets: list[int]) -> None:
        self.targets = targets

    def choose_tasks(self, task: int, values: tuple[Any, ...]) -> list[int]:
        return [self.targets[values[1] % len(self.targets)]]


class OrderAlerts(Topology):
    """All of it."""

    config = {"topology.tick.tuple.freq.secs": 10, "alerts.limit": 200}

    orders = Orders.spec()
    beats: ComponentSpec = Heartbeats.spec(config={"topology.debug": False})
    corrections = Corrections.spec()
    alerts = Alerts.spec(inputs={orders: Grouping.custom(ByParity())}, par=2)
    turnover = Turnover.spec(inputs={orders: Grouping.fields("shop")}, par={"": 2, "large": 8})
    quiet = Quiet.spec(inputs=[beats["beats"], corrections, alerts["errors"]])
