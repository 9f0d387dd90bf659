"""The query of a campaign in a process of its own, whose driver may be killed::

    python -m tests.effects.job FOLDER URL LIMIT [PERMITS]

PERMITS: where they come from: driver, shares (of the tasks), or the URL of a Redis.
Reads the lines below FOLDER/in to FOLDER/out, from its checkpoint on, and ends when all are read.
"""

import sys
from pathlib import Path

from pystorm_source import read_stream
from tests.effects.topologies import Lines
from tests.kills.session import of_job


def main(folder: Path, url: str, limit: str, permits: str = "driver") -> None:
    spark = of_job(folder, failures=20)
    options = {"topology.rate.limit": {"api": limit}, "minPartitions": 4, "topology.circuit.breaker.pause.secs": 1}
    options["batch.target.millis"] = 10_000  # between two micro-batches there are no calls
    # A line has about six bytes, which are its offsets. A first micro-batch of minutes is killed again and again.
    options["backpressure.initialRate"] = 6 * int(limit.partition("/")[0])
    if permits == "shares":
        options["topology.rate.limit.tasks"] = 2
    elif permits != "driver":
        options["topology.rate.limit.redis"] = permits
    frame = read_stream(spark, Lines, path=str(folder / "in"), config={"service.url": url}, options=options)
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
