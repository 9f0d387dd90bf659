"""The streaming query of the demo and its progress."""

import json
from pathlib import Path
from typing import Any

TABLE = "pystorm_demo"


class Query:
    """Word count by topology, summed by Spark in its checkpointed state, kept in a table in memory."""

    def __init__(self, spark: Any, folder: Path, checkpoint: Path, bytes_per_trigger: int):
        words = (
            spark.readStream.format("pystorm")
            .option("topology", "pystorm_source.cli.word_count:WordCount")
            .option("maxOffsetsPerTrigger", bytes_per_trigger)
            .load(str(folder))
        )
        self._spark = spark
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
        """Blocking, at most ``seconds``. Raises the error that ended the query, if there was one."""
        if self._query.awaitTermination(seconds):
            raise RuntimeError("the demo's query ended by itself")

    def drain(self) -> None:
        """Blocking, until all text that is there has been counted."""
        self._query.processAllAvailable()

    def stop(self) -> None:
        self._query.stop()

    def counts(self) -> dict[str, int]:
        """Word → count, as Spark has them."""
        return {row["word"]: row["n"] for row in self._spark.table(TABLE).collect()}

    def state(self) -> dict[str, Any]:
        """Rows and micro-batches so far; the newest batch's number and rate; the backlog in bytes."""
        # An idle trigger reports the number of the batch that is to come: only those with rows ran.
        ran = {p.batchId: p for p in self._query.recentProgress if p.numInputRows > 0}
        newest = self._query.lastProgress
        latest = json.loads(newest.sources[0].latestOffset or "{}") if newest is not None else {}
        last = ran[max(ran)] if ran else None
        return {
            "batches": len(ran),
            "batch": last.batchId if last else 0,
            "rows": sum(p.numInputRows for p in ran.values()),
            "rows_per_second": last.processedRowsPerSecond if last else 0.0,
            "backlog": latest.get("backlog", 0),
        }
