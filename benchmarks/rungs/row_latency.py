"""How long a row takes, from Kafka to a file that can be read: the job ``orders`` at a low rate, by each of its sides.

A producer sends 1,000 orders a second all the time. A side starts, does its first rows, and goes on for WARM_SECONDS;
the orders of the next COUNTED_SECONDS are counted. Each must come out once, or at least once, as the side promises.
``value``, ``p50``, ``p99``: milliseconds from the call of the producer until the row can be read.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from confluent_kafka import Producer

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record, rounded
from benchmarks.job_programs.orders import order, priced
from benchmarks.jobs.kafka_loads import PARTITIONS, STEP
from benchmarks.jobs.orders import ORDERS
from benchmarks.jobs.process import Failed, Process
from benchmarks.jobs.readable import Found, Growth, found
from benchmarks.jobs.side import EXACTLY_ONCE, Side
from testbed.kafka_broker import KafkaCluster, kafka_cluster
from testbed.maven import PeerMissing

RATE = 1_000
"""Orders per second. More: sides that are slow on this machine fall behind, and the figure is their queue."""
TICK_SECONDS = 0.01
"""Between orders that are sent together, and between looks at a CSV file. Less: it takes time from the sides."""
WARM_SECONDS, COUNTED_SECONDS = 20, 40
QUICK_SECONDS = 1, 2
LOOK_SECONDS = 2
"""Before the output is read. Less: reading takes time from the last orders that are counted."""
MOST_SECONDS = 240
"""For a side to start, or to end what is counted."""

AT_ONCE = {"trigger": {"processingTime": "0 seconds"}}
LIVE: dict[str, tuple[str, dict[str, Any]]] = {
    "pystorm": ("pystorm", AT_ONCE),
    "spark": ("spark", AT_ONCE),
    "pathway": ("pathway", {"mode": "streaming", "commit_millis": 100}),
    "flink": ("flink", {"bounded": "unbounded", "checkpoints": "1s"}),
    "flink-200ms": ("flink", {"bounded": "unbounded", "checkpoints": "200ms"}),
    "quix": ("quix", {"idle_seconds": 0, "commit_seconds": 1}),
    "quix-200ms": ("quix", {"idle_seconds": 0, "commit_seconds": 0.2}),
    "bytewax": ("bytewax", {"tail": True, "seconds": 1}),
    "bytewax-200ms": ("bytewax", {"tail": True, "seconds": 0.2}),
}
"""A case → the side of ``orders``, and the options with which its program runs on."""
_OF_ORDERS = {side.name: side for side in ORDERS.sides}
SIDES = tuple(
    _OF_ORDERS[name]._replace(name=case, more={**_OF_ORDERS[name].more, **options})
    for case, (name, options) in LIVE.items()
)


class Took(NamedTuple):
    """Milliseconds."""

    p50: float
    p99: float


class Orders:
    """Orders that are sent to a topic, evenly. ``sent``: when each was, in seconds since 1970."""

    def __init__(self, cluster: KafkaCluster, topic: str, growth: Growth):
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0, "log_level": 0})
        self._topic, self._growth, self._began = topic, growth, time.monotonic()
        self.sent: list[float] = []

    def send(self, seconds: float) -> None:
        """Sends for so long."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            for number in range(len(self.sent), int((now - self._began) * RATE)):
                self.sent.append(time.time())
                self._producer.produce(self._topic, order(number), partition=number % PARTITIONS)
            self._producer.poll(0)
            self._growth.look(time.time())
            time.sleep(TICK_SECONDS)

    def send_until(self, done: Callable[[], bool], process: Process) -> None:
        """Sends until it is done. Raises Failed if the side ends, or takes too long."""
        until = time.monotonic() + MOST_SECONDS
        self.send(LOOK_SECONDS)
        while not done():
            process.check()
            if time.monotonic() > until:
                raise Failed(f"no row, or not all of them, after {MOST_SECONDS} seconds")
            self.send(LOOK_SECONDS)


def measured(side: Side, cluster: KafkaCluster, topic: str, quick: bool) -> Took:
    """Runs a side once. Raises PeerMissing, Failed, and RuntimeError for wrong rows."""
    warm, counted = QUICK_SECONDS if quick else (WARM_SECONDS, COUNTED_SECONDS)
    cluster.create(topic, PARTITIONS)
    with TemporaryDirectory(prefix="jobs") as folder, Process(side.kind, Path(folder)) as process:
        out, work = Path(folder, "out"), Path(folder, "work")
        work.mkdir()
        options = {"servers": cluster.bootstrap, "topic": topic, "step": STEP, "out": str(out), "work": str(work)}
        process.start(f"orders_{side.program}", {**side.kind.options(), **side.more, **options})
        growth = Growth(out / "rows.csv")
        orders = Orders(cluster, topic, growth)
        orders.send_until(lambda: any(found(out, growth)), process)
        orders.send(warm)
        first = len(orders.sent)
        orders.send(counted)
        wanted = {row[0]: row[4] for row in map(priced, map(order, range(first, len(orders.sent)))) if row}
        orders.send_until(lambda: wanted.keys() <= {row.number for row in found(out, growth)}, process)
        since = checked(wanted, found(out, growth), side.guarantee == EXACTLY_ONCE)
    millis = sorted(1e3 * (since[number] - orders.sent[number]) for number in wanted)
    return Took(millis[len(millis) // 2], millis[len(millis) * 99 // 100])


def checked(wanted: dict[int, int], rows: Iterator[Found], once: bool) -> dict[int, float]:
    """Since when each of these orders (number: cents) can be read. Raises RuntimeError for other cents, and for an
    order that came out twice if it must come out ``once``."""
    since: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        since[row.number].append(row.since)
        if wanted.get(row.number, row.cents) != row.cents:
            raise RuntimeError(f"{row} instead of {wanted[row.number]} cents")
    if once and (twice := [number for number in wanted if len(since[number]) > 1]):
        raise RuntimeError(f"{len(twice)} orders came out more than once, such as {twice[0]}")
    return {number: min(times) for number, times in since.items()}


def run(settings: Settings) -> Iterator[Record]:
    """The sides in turn, every second time backwards. ``--case flink``: ours and this peer."""
    ours = SIDES[0]
    sides = [side for side in SIDES if side is ours or (settings.peers and settings.wants(side.name))]
    seen: dict[str, list[Took]] = {side.name: [] for side in sides}
    notes: dict[str, str] = {}
    with TemporaryDirectory(prefix="jobs") as folder, kafka_cluster(Path(folder)) as cluster:
        for number in range(settings.runs_of(3)):
            for side in sides if number % 2 == 0 else reversed(sides):
                if side.name in notes:
                    continue
                try:
                    seen[side.name].append(measured(side, cluster, f"{side.name}-{number}", settings.quick))
                    print(f"{side.name}: {seen[side.name][-1]}", file=sys.stderr, flush=True)  # all of them take long
                except (PeerMissing, Failed) as error:
                    if side is ours:
                        raise
                    notes[side.name] = str(error)
    for side in sides:
        is_peer = side is not ours
        theirs = seen[side.name] if is_peer else []
        yield record(
            "row_latency",
            side.name,
            [each.p50 for each in seen[ours.name]],
            "ms",
            peer=side.name if is_peer else None,
            peer_version=side.kind.version if is_peer else None,
            peer_values=[each.p50 for each in theirs],
            asked=0.9 if side.name == "spark" else None,
            less_is_better=True,
            **_percentiles("", seen[ours.name]),
            **_percentiles("peer_", theirs),
            guarantee=side.guarantee,
            note=notes.get(side.name),
        )


def _percentiles(whose: str, took: list[Took]) -> dict[str, Any]:
    """Medians over the runs."""
    columns = zip(*took, strict=True)
    return {f"{whose}{name}": rounded(median(column)) for name, column in zip(Took._fields, columns, strict=False)}
