"""Requests per second of an AsyncBolt with 20,000 of them in flight, against the same client by hand with a semaphore.

    aiohttp            GETs to a local server that answers after half a second, each into one row of output
    aiohttp-ordered    the same, results in the order of the requests
    aiohttp-uvloop     the same as aiohttp, both on uvloop, if it is installed
    httpx              fewer, because that client takes several times as long for each

Ours is an entire topology (spout, AsyncBolt, rows as Arrow batches) in one thread; the server is a separate process.
Both open as many connections as a process may have files. Every run begins without connections and ends with the last
row.
"""

import asyncio
import gc
import importlib.util
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from benchmarks.harness.components import OffsetSpout
from benchmarks.harness.ladder import Settings
from benchmarks.harness.peers import PROGRAMS
from benchmarks.harness.record import Record, record
from pystorm_source.api import AsyncBolt, Topology, Tuple
from pystorm_source.clock import SystemClock
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker
from pystorm_source.worker.event_loop import EventLoop

CLOCK = SystemClock()
SERVER_SECONDS = 0.5
OUTPUT = OutputPlan(pa.schema([("n", pa.int64()), ("size", pa.int64())]), (ViewPlan("last", "default", (0, 1)),))

Fetch = Callable[[str], Awaitable[bytes]]


def most_connections() -> int:
    """Returns the most connections of one process, whose files are limited."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 300


class Aiohttp:
    """A session of aiohttp."""

    async def open(self) -> Fetch:
        import aiohttp

        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=most_connections()), timeout=aiohttp.ClientTimeout(total=None)
        )
        return self.fetch

    async def fetch(self, url: str) -> bytes:
        async with self.session.get(url) as response:
            return await response.read()

    async def close(self) -> None:
        await self.session.close()


class Httpx:
    """A client of httpx."""

    async def open(self) -> Fetch:
        import httpx

        limits = httpx.Limits(max_connections=most_connections(), max_keepalive_connections=None)
        self.client = httpx.AsyncClient(limits=limits, timeout=60)
        return self.fetch

    async def fetch(self, url: str) -> bytes:
        response = await self.client.get(url)
        return response.content

    async def close(self) -> None:
        await self.client.aclose()


CLIENTS: dict[str, type[Any]] = {"aiohttp": Aiohttp, "httpx": Httpx}


class Fetches(AsyncBolt):
    """GETs for each tuple."""

    outputs = ["n long", "size long"]

    async def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:  # type: ignore[override]
        self.client = CLIENTS[conf["benchmark.client"]]()
        self.fetch = await self.client.open()
        self.urls = conf["benchmark.urls"]

    async def process(self, tup: Tuple) -> None:
        number = tup.values[0]
        body = await self.fetch(self.urls[number % len(self.urls)])
        self.emit((number, len(body)))

    async def cleanup(self) -> None:  # type: ignore[override]
        await self.client.close()


class Enrich(Topology):
    """Spout → bolt that waits → rows."""

    numbers = OffsetSpout.spec()
    last = Fetches.spec(inputs=[numbers])


class Case(NamedTuple):
    """``requests`` in total, ``in_flight`` at a time."""

    name: str
    client: str
    requests: int
    in_flight: int
    asked: float | None
    ordered: bool = False
    uvloop: bool = False


CASES = (
    Case("aiohttp", "aiohttp", 60_000, 20_000, 0.95),
    Case("aiohttp-ordered", "aiohttp", 60_000, 20_000, 0.95, ordered=True),
    Case("aiohttp-uvloop", "aiohttp", 60_000, 20_000, 0.95, uvloop=True),
    Case("httpx", "httpx", 4_000, 1_000, 0.95),
)


def ours(case: Case, urls: list[str]) -> float:
    """Returns the seconds of a new worker's first micro-batch."""
    config = {
        "benchmark.client": case.client,
        "benchmark.urls": urls,
        "topology.async.max.pending": case.in_flight,
        "topology.async.ordered": case.ordered,
        "topology.async.request.timeout.secs": 300,
        "topology.async.loop": "uvloop" if case.uvloop else "asyncio",
    }
    worker = Worker(compile_plan(Enrich, config), OUTPUT)
    worker.start()
    began = CLOCK.monotonic()
    rows = sum(batch.num_rows for batch in worker.run("numbers", "0", 0, case.requests))
    seconds = CLOCK.monotonic() - began
    worker.stop()
    if rows != case.requests:
        raise RuntimeError(f"{rows} rows came of {case.requests} requests")
    return seconds


def by_hand(case: Case, urls: list[str]) -> float:
    """Returns the seconds of the same work in a script."""

    async def work() -> float:
        client = CLIENTS[case.client]()
        fetch = await client.open()
        places = asyncio.Semaphore(case.in_flight)
        rows = []

        async def request(number: int) -> None:
            try:
                body = await fetch(urls[number % len(urls)])
                rows.append((number, len(body)))
            finally:
                places.release()

        began = CLOCK.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in range(case.requests):
                await places.acquire()
                tasks.create_task(request(number))
        assert len(rows) == case.requests
        seconds = CLOCK.monotonic() - began
        await client.close()
        return seconds

    loop = EventLoop("uvloop" if case.uvloop else "asyncio")
    loop.hold(case)
    try:
        taken: float = loop.run(work())
        return taken
    finally:
        loop.release(case)


@contextmanager
def server() -> Iterator[list[str]]:
    """Yields the URLs of a local server."""
    command = [sys.executable, str(PROGRAMS / "http_server.py"), str(SERVER_SECONDS)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield [f"http://127.0.0.1:{port}/" for port in process.stdout.readline().split()]
    finally:
        process.communicate(timeout=10)


def run(settings: Settings) -> Iterator[Record]:
    """Measures ours and by hand in turn; a new server for each run."""
    for case in CASES:
        if not settings.wants(case.name):
            continue
        missing = [name for name in (case.client, *["uvloop"][: case.uvloop]) if importlib.util.find_spec(name) is None]
        if settings.quick and missing:
            continue  # this client is not installed
        if settings.quick:
            case = case._replace(requests=case.requests // 60, in_flight=case.in_flight // 60)
        rates: dict[Callable[[Case, list[str]], float], list[float]] = {ours: [], by_hand: []}
        for _ in range(0 if missing else settings.runs_of(3)):
            for way, seen in rates.items():
                gc.collect()
                with server() as urls:
                    seen.append(case.requests / way(case, urls))
        yield record(
            "async",
            case.name,
            rates[ours],
            "requests/s",
            peer=f"{case.client} by hand",
            peer_values=rates[by_hand],
            asked=case.asked,
            in_flight=case.in_flight,
            note=f"{' and '.join(missing)} is not installed" if missing else None,
        )
