"""Visits of Kafka → a running count of each of 100,000 visitors → Parquet, its changes."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.job_programs.visits import visit
from benchmarks.jobs.kafka_loads import QUICK_ROWS, ROWS, kafka_loads, rows_of
from benchmarks.jobs.measuring import Job, Loads
from benchmarks.jobs.side import AT_LEAST_ONCE, BYTEWAXES, EXACTLY_ONCE, PATHWAYS, PYFLINK, SPARK, Side


def _check_of(records: int) -> Callable[[Path], None]:
    def check(out: Path) -> None:
        """The last, hence the largest, count of each visitor."""
        totals = rows_of(out, ["visitor", "visits"]).group_by("visitor").aggregate([("visits", "max")])
        found = dict(zip(totals["visitor"].to_pylist(), totals["visits_max"].to_pylist(), strict=True))
        wanted = Counter(visit(number).decode() for number in range(records))
        if found != wanted:
            raise RuntimeError(f"{len(found)} visitors with other counts than the {len(wanted)} of the topic")

    return check


def _loads(folder: Path, quick: bool) -> AbstractContextManager[Loads]:
    return kafka_loads(folder, QUICK_ROWS if quick else ROWS, visit, _check_of)


VISITS = Job(
    "visits",
    (
        Side("pystorm", "pystorm", SPARK, EXACTLY_ONCE),
        Side("spark", "spark", SPARK, EXACTLY_ONCE),
        Side("spark-state", "spark_state", SPARK, EXACTLY_ONCE),
        Side("flink", "flink", PYFLINK, EXACTLY_ONCE, {"mode": "process"}),
        Side("flink-thread", "flink", PYFLINK, EXACTLY_ONCE, {"mode": "thread"}),
        Side("pathway", "pathway", PATHWAYS, AT_LEAST_ONCE),
        Side("bytewax", "bytewax", BYTEWAXES, AT_LEAST_ONCE),
    ),
    _loads,
    asked=0.8,
    asked_of_all=False,
)
