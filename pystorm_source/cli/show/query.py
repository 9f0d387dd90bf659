"""The streaming query of the demo: its progress, its counts, and the Python process that works for it."""

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pystorm_source.cli.word_count import SERVICE
from pystorm_source.types.json_values import object_in

TABLE = "pystorm_demo"
TARGET_MILLIS = 1500
AT_WORK_SECONDS = 0.3
"""A worker that read the service's file this recently is in a task: it reads the file at a third of this interval."""


class MicroBatch(NamedTuple):
    """A micro-batch that ran, in seconds and bytes. None: this Spark's progress does not say it (before 4.2).

    ``read``: its own bytes; ``position``: all up to its end, in every file together.
    """

    number: int
    began: float
    seconds: float
    rows: int
    read: int
    position: int
    target: float | None
    budget: int | None
    backlog: int | None
    pressure: int | None
    reason: str

    @classmethod
    def of(cls, progress: Any) -> "MicroBatch":
        """Reads the ``StreamingQueryProgress`` of a query with one source."""
        source = progress.sources[0]
        said = object_in(source.latestOffset)
        target = said.get("targetMillis")
        return cls(
            progress.batchId,
            datetime.fromisoformat(progress.timestamp).timestamp(),
            progress.batchDuration / 1000,
            progress.numInputRows,
            _position(source.endOffset) - _position(source.startOffset),
            _position(source.endOffset),
            None if target is None else target / 1000,
            said.get("budget"),
            said.get("backlog"),
            said.get("pressure"),
            said.get("reason", ""),
        )

    @property
    def allowed(self) -> int:
        """The bytes that it was allowed to read; the bytes that it did read if this Spark does not say."""
        return self.read if self.budget is None else self.budget

    @property
    def aim(self) -> float:
        """The target in force; the query's configured one if this Spark does not say."""
        return self.target or TARGET_MILLIS / 1000


class Query:
    """Word count by topology, summed by Spark in its checkpointed state, kept in a table in memory.

    ``service``: the file that says how many seconds the topology's look-up takes. Its folder is written to.
    """

    def __init__(self, spark: Any, text: Path, checkpoint: Path, service: Path):
        words = (
            spark.readStream.format("pystorm")
            .option("topology", "pystorm_source.cli.word_count:WordCount")
            .option("config", json.dumps({SERVICE: str(service)}))
            .option("batch.target.millis", TARGET_MILLIS)
            .load(str(text))
        )
        self._spark = spark
        self._service = service
        self._query = (
            words.groupBy("word")
            .agg({"n": "sum"})
            .withColumnRenamed("sum(n)", "n")
            .writeStream.outputMode("complete")
            .format("memory")
            .queryName(TABLE)
            .option("checkpointLocation", str(checkpoint))
            .start()
        )

    def wait(self, seconds: float) -> None:
        """Blocking, up to ``seconds``. Raises the error that ended the query, if any."""
        if self._query.awaitTermination(seconds):
            raise RuntimeError("the demo's query ended by itself")

    def stop(self) -> None:
        self._query.stop()

    def counts(self) -> dict[str, int]:
        """Word → count, from Spark's table."""
        return {row["word"]: row["n"] for row in self._spark.table(TABLE).collect()}

    def ran(self) -> list[MicroBatch]:
        """Returns the finished micro-batches in order."""
        # An idle trigger reports the number of the next batch: only batches with rows ran.
        ran = {p.batchId: p for p in self._query.recentProgress if p.numInputRows > 0}
        return [MicroBatch.of(ran[number]) for number in sorted(ran)]

    def failed_tasks(self) -> int:
        """Returns how many tasks of this run have failed, by Spark's status tracker."""
        tracker = self._spark.sparkContext.statusTracker()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(str(self._query.runId)))
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        return sum(info.numFailedTasks for info in map(tracker.getStageInfo, stages) if info is not None)

    def worker_at_work(self) -> int | None:
        """Returns the process id of a Python worker that is running a task of this query, or None."""
        now = time.time()
        for path in self._service.parent.glob("worker-*"):
            if now - path.stat().st_mtime < AT_WORK_SECONDS:
                return int(path.name.removeprefix("worker-"))
        return None


def _position(offset: str | None) -> int:
    """The offsets of the query's files added up; 0 before the first one."""
    return sum(sum(each.values()) for each in object_in(offset).get("offsets", {}).values())
