"""Tuples per second through Spark for a journaled socket and a heavy bolt, on two cores.

    200us     with ``journal.readers``, against the same query without: one task polls, then computes
    20us      the same with a lighter bolt

A server in this process sends lines as fast as they are taken. The sides take turns, each with its own query,
checkpoint and journal. The figure counts the rows between the starts of two micro-batches, after the first ones.
Needs two cores: meaningless on a busy machine.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from benchmarks.harness.spark_session import spark_session
from benchmarks.rungs.processes import LOOPS, Heavy, loops_of
from pystorm_source import read_stream
from pystorm_source.api import Topology
from pystorm_source.spouts import SocketSpout

CASES = {"200us": (200, 50_000, 1.8), "20us": (20, 100_000, None)}
"""Microseconds per tuple, tuples per micro-batch, the target ratio. Fewer tuples: Spark's overhead around the tasks of
a micro-batch, which no core shares, hides the gain. More: a run takes minutes."""
READERS = 4
"""Two for each core: the core that polls takes the rest when it is done."""
WARM_UP = 2
"""Micro-batches before counting: processes start, and the first one has nothing to read."""
ASK_SECONDS = 1.0
"""Interval between two looks at the progress. Less: they take time from the cores, which one side fully needs."""
LINES = b"".join(b"%06d\n" % n for n in range(4096))


class Parse(Heavy):
    """Computes for each line."""

    outputs = ["value string", "x long"]


class Parsed(Topology):
    """Lines of a socket, parsed."""

    lines = SocketSpout.spec()
    parse = Parse.spec(inputs=[lines])


@contextmanager
def line_server() -> Iterator[int]:
    """Yields the port of a server that sends lines to every client as fast as it takes them."""
    ended = threading.Event()

    def send(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while not ended.is_set():
                connection.sendall(LINES)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=send, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        ended.set()


def run(settings: Settings) -> Iterator[Record]:
    """Measures both sides of each case in turn."""
    wanted = [case for case in CASES if settings.wants(case)]
    if not wanted:
        return
    with spark_session() as (spark, folder), line_server() as port:
        for case in wanted:
            micros, most, asked = CASES[case]
            most = most // 10 if settings.quick else most
            told = {
                "port": port,
                "maxOffsetsPerTrigger": most,
                "config": {LOOPS: loops_of(micros)},
            }
            seen: dict[str, list[float]] = {"readers": [], "one": []}
            for number in range(settings.runs_of(3)):
                for side, found in seen.items():
                    given = {**told, "journal.readers": READERS} if side == "readers" else told
                    place = folder / f"{case}-{side}-{number}"
                    found.append(rate(spark, place, 1 if settings.quick else 2, given))
            yield record(
                "journal",
                case,
                seen["readers"],
                "tuples/s",
                peer="without journal.readers",
                peer_values=seen["one"],
                asked=asked,
                readers=READERS,
                offsets=most,
            )


def rate(spark: Any, folder: Path, batches: int, told: dict[str, Any]) -> float:
    """Returns rows per second of a query over so many micro-batches."""
    options = {"host": "127.0.0.1", "journal.path": str(folder / "journal"), **told}
    frame = read_stream(spark, Parsed, options=options)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.start()
    try:
        end = time.monotonic() + 600
        while len(progress := query.recentProgress) < WARM_UP + batches + 1:
            if query.exception() is not None:
                raise query.exception()
            if time.monotonic() > end:
                raise RuntimeError(f"{len(progress)} micro-batches in 10 minutes")
            time.sleep(ASK_SECONDS)
    finally:
        query.stop()
    counted = progress[WARM_UP : WARM_UP + batches]
    began, ended = (_seconds(progress[at]) for at in (WARM_UP, WARM_UP + batches))
    return sum(each["numInputRows"] for each in counted) / (ended - began)


def _seconds(progress: Any) -> float:
    return datetime.fromisoformat(progress["timestamp"]).timestamp()
