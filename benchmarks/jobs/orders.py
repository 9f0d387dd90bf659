"""Orders of Kafka, JSON of 200 bytes → parsed, priced by tables, in Python record by record → Parquet."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow.compute as pc

from benchmarks.job_programs.orders import order, priced
from benchmarks.jobs.kafka_loads import QUICK_ROWS, ROWS, kafka_loads, rows_of
from benchmarks.jobs.measuring import Job, Loads
from benchmarks.jobs.side import (
    AT_LEAST_ONCE,
    BYTEWAXES,
    EXACTLY_ONCE,
    NONE,
    PATHWAYS,
    PYFLINK,
    QUIX_STREAMS,
    SPARK,
    Side,
)


def _check_of(records: int) -> Callable[[Path], None]:
    def check(out: Path) -> None:
        """Each order that is not cancelled, once."""
        found = rows_of(out, ["number", "cents"])
        wanted = [row for row in map(priced, map(order, range(records))) if row]
        seen = (len(found), pc.count_distinct(found["number"]).as_py(), pc.sum(found["cents"]).as_py())
        right = (len(wanted), len(wanted), sum(row[4] for row in wanted))
        if seen != right:
            raise RuntimeError(f"rows, orders and cents are {seen} instead of {right}")

    return check


def _loads(folder: Path, quick: bool) -> AbstractContextManager[Loads]:
    return kafka_loads(folder, QUICK_ROWS if quick else ROWS, order, _check_of)


ORDERS = Job(
    "orders",
    (
        Side("pystorm", "pystorm", SPARK, EXACTLY_ONCE),
        Side("spark", "spark", SPARK, EXACTLY_ONCE),
        Side("spark-udf", "spark_udf", SPARK, EXACTLY_ONCE),
        Side("flink", "flink", PYFLINK, EXACTLY_ONCE, {"mode": "process"}),
        Side("flink-thread", "flink", PYFLINK, EXACTLY_ONCE, {"mode": "thread"}),
        Side("pathway", "pathway", PATHWAYS, AT_LEAST_ONCE),
        Side("quix", "quix", QUIX_STREAMS, AT_LEAST_ONCE),
        Side("bytewax", "bytewax", BYTEWAXES, NONE),
    ),
    _loads,
    asked=1.0,
    asked_of_all=True,
)

DECODED = Job(
    "decoded",
    (
        Side("pystorm", "pystorm", SPARK, EXACTLY_ONCE),
        Side("spark", "spark", SPARK, EXACTLY_ONCE),
        Side("flink", "flink", PYFLINK, EXACTLY_ONCE, {"mode": "process"}),
        Side("flink-thread", "flink", PYFLINK, EXACTLY_ONCE, {"mode": "thread"}),
        Side("pathway", "pathway", PATHWAYS, AT_LEAST_ONCE),
    ),
    _loads,
    asked=1.0,
    asked_of_all=True,
)
"""The same; each package decodes JSON by the reader that it has for columns."""
