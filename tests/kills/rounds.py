"""A round: who is killed where, all of it from one seed; the query that suffers it, and what its sink holds."""

import hashlib
import json
import random
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.kills.session import CLUSTER, LOCAL, TWO_HOSTS
from tests.kills.topologies import AFTER_EMIT, BEFORE_EMIT, MID_DRAIN

TOTAL = 200
PER_TRIGGER = 160
DEADLINE = 120

# What seed i does: CASES[i % len(CASES)].
CASES = [
    (victim, point)
    for point in (BEFORE_EMIT, AFTER_EMIT, MID_DRAIN)
    for victim in ("worker", "executor", "twin", "worker", "driver")
]


@dataclass(frozen=True)
class Round:
    """What happens, at number ``n`` of ``partition``.

    ``victim``: worker, executor or driver, of which ``driver`` says what ("jvm", "python" or "both"); twin: nobody is
    killed before two attempts of the task have met there and gone on together; nobody.
    """

    seed: int
    victim: str
    point: str
    scheduler: str
    partition: str
    n: int
    driver: str
    master: str

    @classmethod
    def of(cls, seed: int) -> "Round":
        """The round of that seed, always the same one."""
        chance = random.Random(seed)
        victim, point = CASES[seed % len(CASES)]
        return cls(
            seed,
            victim,
            point,
            chance.choice(["inline", "threads"]),
            chance.choice("ab"),
            chance.randrange(TOTAL),
            chance.choice(["jvm", "python", "both"]),
            {"driver": chance.choice([LOCAL, LOCAL, CLUSTER]), "twin": TWO_HOSTS}.get(victim, CLUSTER),
        )

    @classmethod
    def unharmed(cls) -> "Round":
        """A round without a kill."""
        return cls(-1, "nobody", "", "inline", "a", 0, "", CLUSTER)

    def folder(self, where: Path) -> Path:
        """Checkpoint, sink and marker of this round."""
        return where / f"round{self.seed}"

    def described(self) -> dict[str, Any]:
        """For who reads the outcome."""
        return {name: value for name, value in asdict(self).items() if name != "driver" or self.victim == "driver"}

    def options(self, folder: Path) -> dict[str, str]:
        """The reader's."""
        config = {
            "kills.folder": str(folder),
            "kills.victim": self.victim,
            "kills.point": self.point,
            "kills.partition": self.partition,
            "kills.n": self.n,
            "kills.total": TOTAL,
        }
        return {
            "topology": "tests.kills.topologies:Killed",
            "config": json.dumps(config),
            "streams": "all",
            "maxOffsetsPerTrigger": str(PER_TRIGGER),
            "output.batch.rows": "50",
            "topology.scheduler": self.scheduler,
        }


def run(spark: SparkSession, one: Round, folder: Path) -> None:
    """Runs the round's query until it has read everything, from where its checkpoint is. Raises what the query does."""
    rows = spark.readStream.format("pystorm").options(**one.options(folder)).load()
    writer = rows.writeStream.format("parquet").option("path", f"{folder}/out")
    query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    if not query.awaitTermination(DEADLINE):
        query.stop()
        raise TimeoutError(f"the query has not ended in {DEADLINE} seconds: {one}")
    if query.exception() is not None:
        raise query.exception()


def content(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Count and checksum of the rows in the round's sink, whatever their order."""
    rows = sorted(map(repr, map(tuple, spark.read.parquet(f"{folder}/out").collect())))
    return {"rows": len(rows), "sha256": hashlib.sha256("\n".join(rows).encode()).hexdigest()}


def has_happened(folder: Path) -> bool:
    """Whether the kill of the round has."""
    return (folder / "happened").exists()


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
