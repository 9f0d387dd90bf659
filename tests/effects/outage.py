"""Calls of a limited service in the ten seconds after it was down, for each place that gives permits::

    python -m tests.effects.outage [--places kit,run,tasks,apply,source,redis] [--limit 100] [--down 1.5]

A real service, real time, and the breaker's own pause. Prints one line of JSON for each place: calls per second from
the end of the outage on, and the most calls in any second of it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from pystorm_source import apply, read_stream
from pystorm_source.spark.java import ensure_java
from pystorm_source.testing import run_topology
from testbed.effects_service import Service, effects_service
from testbed.periods import most_in_a_period
from tests.effects.topologies import Lines, Rows
from tests.states.redis_process import redis_process

ROOT = Path(__file__).resolve().parents[2]
AFTER_SECONDS = 10
FILES = 2


class Outage:
    """``given``: options of the query. ``rows``: for the time before, the outage and the ten seconds."""

    def __init__(self, folder: Path, service: Service, limit: int, down: float):
        self.folder = folder
        self.service = service
        self.limit, self.down = limit, down
        self.rows = int(limit * (AFTER_SECONDS + down + 8))
        self.given = {"topology.rate.limit": {"api": f"{limit}/s"}, "minPartitions": FILES}
        self.config = {"service.url": service.url}

    def measure(self, query: Callable[[], object]) -> tuple[float, int]:
        """Calls per second behind the outage, and the most in a second."""
        failed: list[BaseException] = []

        def run() -> None:
            try:
                query()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        end = time.monotonic() + 60
        while len(self.service.calls) < self.limit and time.monotonic() < end and thread.is_alive():
            time.sleep(0.05)
        self.service.behave(down=True)
        time.sleep(self.down)
        self.service.behave()
        over = time.time()
        thread.join(90)
        if failed or thread.is_alive():
            raise RuntimeError(f"the query did not end: {failed}")
        times = [call.time for call in self.service.calls if over <= call.time < over + AFTER_SECONDS]
        return len(times) / AFTER_SECONDS, most_in_a_period(times)

    def lines(self) -> str:
        folder = self.folder / "in"
        folder.mkdir()
        for number in range(FILES):
            (folder / f"{number}.txt").write_text("".join(f"{number}-{n}\n" for n in range(self.rows // FILES)))
        return str(folder)

    def kit(self, spark: SparkSession) -> None:
        limit = {"topology.rate.limit": self.given["topology.rate.limit"]}
        run_topology(Lines, {**limit, **self.config, "path": self.lines()}, timeout=90)

    def run(self, spark: SparkSession) -> None:
        """``pystorm-source run`` in a process of its own."""
        limit = json.dumps(self.given["topology.rate.limit"])
        options = [f"path={self.lines()}", f"service.url={self.service.url}", f"topology.rate.limit={limit}"]
        command = [sys.executable, "-m", "pystorm_source", "run", "--once", f"{Lines.__module__}:Lines"]
        for option in options:
            command += ["-o", option]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)

    def source(self, spark: SparkSession, **more: object) -> None:
        frame = read_stream(spark, Lines, path=self.lines(), config=self.config, options={**self.given, **more})
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(self.folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    def tasks(self, spark: SparkSession) -> None:
        self.source(spark, **{"topology.rate.limit.tasks": FILES})

    def apply(self, spark: SparkSession) -> None:
        frame = spark.range(0, self.rows, 1, FILES).selectExpr("cast(id AS string) AS line")
        given = {key: value for key, value in self.given.items() if key != "minPartitions"}
        apply(frame, Rows, config=self.config, options=given).write.format("noop").mode("append").save()

    def redis(self, spark: SparkSession) -> None:
        (self.folder / "redis").mkdir()
        with redis_process(self.folder / "redis") as redis:
            self.source(spark, **{"topology.rate.limit.redis": redis.url})


PLACES = ("kit", "run", "tasks", "apply", "source", "redis")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--places", default=",".join(PLACES))
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--down", type=float, default=1.5)
    asked = parser.parse_args()
    ensure_java()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for place in asked.places.split(","):
        with tempfile.TemporaryDirectory() as folder, effects_service(Path(folder) / "service") as service:
            service.behave(seconds=0.02)
            outage = Outage(Path(folder), service, asked.limit, asked.down)
            rate, most = outage.measure(lambda outage=outage, place=place: getattr(outage, place)(spark))
        print(json.dumps({"place": place, "per_second": rate, "most_in_a_second": most}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
