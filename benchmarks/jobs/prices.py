"""Numbers of Kafka → a price of each, by HTTP: 500 calls a second, some answers late, some failing once → Parquet."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from benchmarks.harness.peers import PROGRAMS
from benchmarks.jobs.kafka_loads import kafka_loads, rows_of
from benchmarks.jobs.measuring import Job, Load, Loads
from benchmarks.jobs.side import AT_LEAST_ONCE, BARE, EXACTLY_ONCE, PATHWAYS, PYFLINK, SPARK, Side
from benchmarks.peer_programs.http_server import price

ROWS = {"few": 500, "part": 8_000, "all": 8_000}
QUICK_ROWS = {"few": 20, "part": 200, "all": 200}
LIMIT, MOST = 500, 625
"""Calls of a second, and of any second as the server sees it: on a busy machine it is itself stopped at times."""


def _check_of(url: str) -> Callable[[int], Callable[[Path], None]]:
    def check_of(records: int) -> Callable[[Path], None]:
        def check(out: Path) -> None:
            """Each number once, with its price, and no second with more calls than are allowed."""
            with urlopen(f"{url}/calls", timeout=20) as answer:
                most = json.load(answer)["most"]
            rows = rows_of(out, ["number", "price"])
            found = sorted(zip(rows["number"].to_pylist(), rows["price"].to_pylist(), strict=True))
            if found != [(number, price(number)) for number in range(records)]:
                raise RuntimeError(f"{len(found)} rows, or prices, that are not those of {records} numbers")
            if most > MOST:
                raise RuntimeError(f"{most} calls in a second instead of {LIMIT}")

        return check

    return check_of


def _asking(load: Load, url: str) -> Load:
    return load._replace(options=lambda work: {**load.options(work), "url": url})


@contextmanager
def _loads(folder: Path, quick: bool) -> Iterator[Loads]:
    command = [sys.executable, str(PROGRAMS / "http_server.py"), "prices"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().split()[0]}"
        rows = QUICK_ROWS if quick else ROWS
        with kafka_loads(folder, rows, lambda number: str(number).encode(), _check_of(url)) as loads:
            yield Loads(*(_asking(each, url) for each in loads))
    finally:
        server.communicate(timeout=10)


PRICES = Job(
    "prices",
    (
        Side("pystorm", "pystorm", SPARK, EXACTLY_ONCE),
        Side("spark", "spark", SPARK, EXACTLY_ONCE),
        Side("flink", "flink", PYFLINK, EXACTLY_ONCE),
        Side("pathway", "pathway", PATHWAYS, AT_LEAST_ONCE),
        Side("by-hand", "by_hand", BARE, AT_LEAST_ONCE),
    ),
    _loads,
    asked=1.0,
    asked_of_all=True,
)
