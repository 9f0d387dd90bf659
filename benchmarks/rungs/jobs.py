"""Whole jobs, by each side that a user would choose between: rows per second of all processors that it uses.

    orders   Kafka, JSON → a function of Python for each record → Parquet
    decoded  the same with each package's own reader of JSON
    prices   Kafka, numbers → a call of a service for each, 500 a second → Parquet
    logs     a log that grows and is rotated → a regular expression → Parquet
    visits   Kafka, names → a running count of each, 100,000 of them → Parquet
    words    text files → a count of each word → Parquet

``benchmarks/jobs`` has what goes in and must come out, ``benchmarks/job_programs`` a program for each job and side.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record
from benchmarks.jobs.logs import LOGS
from benchmarks.jobs.measuring import records
from benchmarks.jobs.orders import DECODED, ORDERS
from benchmarks.jobs.prices import PRICES
from benchmarks.jobs.process import Processes
from benchmarks.jobs.visits import VISITS
from benchmarks.jobs.words import WORDS

JOBS = (ORDERS, DECODED, PRICES, VISITS, LOGS, WORDS)


def run(settings: Settings) -> Iterator[Record]:
    """Each job with its sides in turn; ``--case orders`` is all of one, ``--case orders/flink`` ours and one peer."""
    chosen = {case.partition("/")[0] for case in settings.cases}
    with Processes(settings.quick) as processes:
        for job in JOBS:
            if chosen and job.name not in chosen:
                continue
            names = frozenset(case.partition("/")[2] for case in settings.cases if case.startswith(f"{job.name}/"))
            with tempfile.TemporaryDirectory(prefix="jobs") as folder, job.loads(Path(folder), settings.quick) as loads:
                yield from records(job, loads, names, settings.runs_of(3), settings.peers, processes)
