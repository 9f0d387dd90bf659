"""Rounds: which process is killed where, all of it from a seed. A query suffers several, in different micro-batches."""

import hashlib
import json
import random
import shutil
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pystorm_source import read_stream
from testbed.uncontrolled import UNCONTROLLED
from tests.kills.session import CLUSTER, LOCAL, TWO_HOSTS
from tests.kills.topologies import (
    AFTER_EMIT,
    AFTER_FLUSH,
    AFTER_STATE,
    BEFORE_CUT,
    BEFORE_EMIT,
    BEFORE_FLUSH,
    BEFORE_READ,
    BEFORE_STATE,
    BEHIND_STATE,
    KEYS,
    MID_DRAIN,
    KilledStates,
)

TOPOLOGIES = "tests.kills.topologies"
BATCHES = 10
PER_BATCH = 60  # offsets of one partition
DEADLINE = 400
NOT_CALLED_BACK = "Python worker failed to connect back"
# Too large: a process that crashes at its start is tried for long. Too small: a busy machine fails a campaign.
MOST_RESTARTS = 10

KINDS = 5  # victims of one point, of which one comes twice

# What seed i does: CASES[kind][i % len(CASES[kind])].
CASES = {
    "offsets": [
        (victim, point)
        for point in (BEFORE_EMIT, AFTER_EMIT, MID_DRAIN)
        for victim in ("worker", "executor", "twin", "worker", "driver")
    ],
    "journal": [
        (victim, point)
        for point in (BEFORE_FLUSH, AFTER_FLUSH)
        for victim in ("worker", "executor", "worker", "driver")
    ],
    # While one task polls, others read: the one gap of a journal, between its manifest and the last ack, is never far.
    # So bolts kill their own process only.
    "readers": [
        ("worker", BEFORE_FLUSH),
        ("worker", AFTER_FLUSH),
        ("executor", BEFORE_FLUSH),
        ("worker", AFTER_FLUSH),
        ("driver", BEFORE_FLUSH),
    ],
    # No gap: pages are read again from their cursor, and there are no acks.
    "cursors": [
        (victim, point)
        for point in (BEFORE_FLUSH, AFTER_FLUSH)
        for victim in ("worker", "executor", "worker", "driver", "executor")
    ],
    "replays": [
        (victim, point)
        for point in (BEFORE_READ, BEFORE_EMIT, AFTER_EMIT)
        for victim in ("worker", "executor", "worker", "driver", "executor")
    ],
    "states": [
        (victim, point)
        for point in (BEFORE_CUT, BEFORE_STATE, AFTER_STATE, BEHIND_STATE)
        for victim in ("worker", "executor", "worker", "driver", "executor")
    ],
}
# From these seeds on, of a query whose spout has a journal, whose bolt keeps states, whose journal several tasks read,
# or whose spout reads pages; of these, every second query has such readers, too. The last ones read pages again.
FIRST = {"offsets": 0, "journal": 1000, "states": 2000, "readers": 3000, "cursors": 4000, "replays": 5000}
JOURNALED = ("journal", "readers", "cursors")
OF_ONE_PARTITION = (*JOURNALED, "replays")


def kind_of(seed: int) -> str:
    """What the query of that seed is about: a key of ``CASES``."""
    return [kind for kind, first in FIRST.items() if seed >= first][-1]


@dataclass(frozen=True)
class Round:
    """What happens, at number ``n`` of ``partition``.

    ``victim``: worker, executor or driver, of which ``driver`` says what ("jvm", "python" or "both"); twin: nobody is
    killed before two attempts of the task have met there and gone on together.
    """

    seed: int
    victim: str
    point: str
    partition: str
    n: int
    driver: str
    master: str

    @classmethod
    def of(cls, seed: int) -> "Round":
        """The round of that seed, always the same one."""
        chance = random.Random(seed)
        kind = kind_of(seed)
        cases = CASES[kind]
        victim, point = cases[seed % len(cases)]
        return cls(
            seed,
            victim,
            point,
            "a" if kind in OF_ONE_PARTITION else chance.choice("ab"),
            # Rounds of one kind of victim go through all micro-batches, so that a query can hold ten of them.
            seed // KINDS % BATCHES * PER_BATCH + chance.randrange(PER_BATCH),
            chance.choice(["jvm", "python", "both"]),
            {"driver": chance.choice([LOCAL, LOCAL, CLUSTER]), "twin": TWO_HOSTS}.get(victim, CLUSTER),
        )

    @property
    def micro_batch(self) -> int:
        """The micro-batch of the unharmed query in which it happens."""
        return self.n // PER_BATCH

    def markers(self, folder: Path) -> Path:
        """Where the query of that folder says how far this round is."""
        return folder / f"round{self.seed}"

    def has_happened(self, folder: Path) -> bool:
        return (self.markers(folder) / "happened").exists()

    def described(self) -> dict[str, Any]:
        """For readers of the outcome."""
        return {name: value for name, value in asdict(self).items() if name != "driver" or self.victim == "driver"}


def queries(todo: Iterable[Round]) -> list[list[Round]]:
    """The rounds by query, as few queries as hold them: no two of one in the same micro-batch."""
    made: dict[tuple[str, bool, str], list[list[Round]]] = {}
    for one in todo:
        alike = made.setdefault((one.master, one.victim == "driver", kind_of(one.seed)), [])
        free = (some for some in alike if one.micro_batch not in {each.micro_batch for each in some})
        some = next(free, None)
        if some is None:
            alike.append(some := [])
        some.append(one)
    return [some for alike in made.values() for some in alike]


def options(todo: list[Round], folder: Path) -> dict[str, str]:
    """The reader's. The first round decides for a scheduler."""
    kills = []
    for one in todo:
        one.markers(folder).mkdir(exist_ok=True)
        kill = {"victim": one.victim, "point": one.point, "partition": one.partition, "n": one.n}
        kills.append({"folder": str(one.markers(folder)), **kill})
    config = {"kills.kills": kills, "kills.total": BATCHES * PER_BATCH, "kills.broker": str(folder)}
    told = {"config": json.dumps(config), "output.batch.rows": "20", "topology.scheduler": scheduler_of(todo)}
    kind = kind_of_query(todo)
    if kind in JOURNALED:
        journal = {"journal.path": f"{folder}/journal", "batch.target.millis": "200"}
        if kind == "readers" or (kind == "cursors" and todo and todo[0].seed % 2):
            journal["journal.readers"] = "2"
        topology = "KilledFeed" if kind == "cursors" else "KilledJournal"
        return {"topology": f"{TOPOLOGIES}:{topology}", "maxOffsetsPerTrigger": str(PER_BATCH), **journal, **told}
    # The groups of a micro-batch are rows: all read alike, however slow the machine.
    uncontrolled = {
        "maxOffsetsPerTrigger": str(2 * PER_BATCH),
        **{key: str(value) for key, value in UNCONTROLLED.items()},
    }
    if kind == "replays":
        more = {"maxOffsetsPerTrigger": str(PER_BATCH), "minPartitions": "2"}
        return {"topology": f"{TOPOLOGIES}:KilledPages", **uncontrolled, **more, **told}
    if kind == "states":
        return {"topology.state.buckets": "4", "topology.stage.partitions": "2", **uncontrolled, **told}
    return {"topology": f"{TOPOLOGIES}:Killed", "streams": "all", **uncontrolled, **told}


def kind_of_query(todo: list[Round]) -> str:
    """That of its rounds, which are of one kind."""
    return kind_of(todo[0].seed) if todo else "offsets"


def scheduler_of(todo: list[Round]) -> str:
    return random.Random(todo[0].seed if todo else 0).choice(["inline", "threads"])


def run(spark: SparkSession, todo: list[Round], folder: Path) -> None:
    """Runs the query of these rounds until it has read everything, from where its checkpoint is.

    Spark gives each Python process ten seconds to call back, however busy the machine is, and a driver's that does not
    ends the query. It is started again then, as any operator would; ``restarts`` counts it. Raises what the query does.
    """
    for _ in range(MOST_RESTARTS):
        try:
            return _run_once(spark, todo, folder)
        except StreamingQueryException as error:
            if NOT_CALLED_BACK not in str(error):
                raise
            with (folder / "restarts").open("a") as log:
                log.write("x")
    return _run_once(spark, todo, folder)


def restarts(folder: Path) -> int:
    """How often the query has been started again because of a Python process that did not call back in time."""
    log = folder / "restarts"
    return len(log.read_text()) if log.exists() else 0


def _run_once(spark: SparkSession, todo: list[Round], folder: Path) -> None:
    if kind_of_query(todo) == "states":
        rows = read_stream(spark, KilledStates, scope="cluster", options=options(todo, folder))
    else:
        rows = spark.readStream.format("pystorm").options(**options(todo, folder)).load()
    writer = rows.writeStream.format("parquet").option("path", f"{folder}/out")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    if kind_of_query(todo) in JOURNALED:
        run_until_all_is_acked(writer.start(), folder)
        return
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(DEADLINE):
        query.stop()
        raise TimeoutError(f"the query has not ended in {DEADLINE} seconds: {todo}")
    if query.exception() is not None:
        raise query.exception()


def run_until_all_is_acked(query: Any, folder: Path) -> None:
    """A spout without offsets never says that it has no more; what it was acked is in a micro-batch that is over as
    soon as three more are: one that was planned before, and one that readers are behind. Raises what the query does."""
    broker, end, batches = folder / "acked", time.monotonic() + DEADLINE, len(noted(folder, "commits"))
    try:
        while len(noted(folder, "commits")) < batches + 3:
            if query.exception() is not None:
                raise query.exception()
            if time.monotonic() > end:
                raise TimeoutError(f"not all was acked, and three micro-batches over, in {DEADLINE} seconds: {folder}")
            if not broker.exists() or len(set(broker.read_text().split())) < BATCHES * PER_BATCH:
                batches = len(noted(folder, "commits"))
            time.sleep(0.1)
    finally:
        query.stop()


def content(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Count and checksum of the rows in the sink, whatever their order, and the sum of the values of each component."""
    found = spark.read.parquet(f"{folder}/out").collect()
    components = {name: [row for row in found if row.asDict().get("_component") == name] for name in ("twice", "sums")}
    return {**digest(map(tuple, found)), **{name: sum(row.value for row in of) for name, of in components.items()}}


def digest(rows: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    """Count and checksum."""
    lines = sorted(map(repr, rows))
    return {"rows": len(lines), "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest()}


def wanted_content(kind: str) -> dict[str, Any]:
    """What the sink of a query of one partition must hold: every number once; and of one with states: every count of
    each key once."""
    if kind in OF_ONE_PARTITION:
        rows = [("a", n, 2 * n) for n in range(BATCHES * PER_BATCH)]
    else:
        numbers = 2 * list(range(BATCHES * PER_BATCH))  # in two partitions
        rows = [(key, 1 + i) for key in range(KEYS) for i in range(sum(n % KEYS == key for n in numbers))]
    return {**digest(rows), "twice": 0, "sums": 0}


def is_whole(content: dict[str, Any]) -> bool:
    """Whether the sums of a sink are those of all numbers."""
    numbers = 2 * sum(range(BATCHES * PER_BATCH))  # in two partitions
    return (content["twice"], content["sums"]) == (2 * numbers, numbers)


def unfinished(folder: Path) -> set[str]:
    """Micro-batches that were planned and did not come to their end."""
    return noted(folder, "offsets") - noted(folder, "commits")


def noted(folder: Path, log: str) -> set[str]:
    """The micro-batches in that log of the checkpoint."""
    return {path.name for path in (folder / "checkpoint" / log).glob("[0-9]*")}


def fresh(folder: Path) -> Path:
    """That folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
