"""Kills around every ready-made source, its server among the victims::

    python -m tests.kills.sources [NAME ...] [--kills 200] [--seed 1] [--folder FOLDER]

Rows of known ids are fed while a query reads them. Meanwhile Python workers, the process that plans, the driver with
its JVM and the source's server die at moments that the seed draws; the seed also draws variants of a source, such as
its paging. Prints one line of JSON for each source: what died, how many rows were fed, which are lost, come twice, or
have another content, and what else is ``wrong``.
"""

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.kills.committed import committed
from tests.kills.killed_job import KilledJob
from tests.kills.linked_worlds import EventWorld, HttpWorld, ObjectsWorld, SqsWorld
from tests.kills.processes import marked
from tests.kills.served_worlds import ChangesWorld, KeyedWorld, MqttTopicWorld, NatsStreamWorld, RedisWorld
from tests.kills.source_topologies import text
from tests.kills.source_world import World
from tests.kills.sources_job import emitted

WORLDS: dict[str, type[World]] = {
    "HttpSpout": HttpWorld,
    "EventStreamSpout": EventWorld,
    "SqsSpout": SqsWorld,
    "NatsSpout": NatsStreamWorld,
    "RedisStreamSpout": RedisWorld,
    "MqttSpout": MqttTopicWorld,
    "PostgresSpout": ChangesWorld,
    "PostgresSpout by key": KeyedWorld,
    "ObjectsSpout": ObjectsWorld,
}
AHEAD = 150
"""Rows that are fed and not in the sink, at most: few, for the campaign's end, and enough for some micro-batches."""
EARLY = 0.06
"""Of the kills: the first ones, which wait for no row. They hit what a query does only once, such as making a slot."""
BOTH = 0.4
"""Of a server's deaths, those during which another process dies, too: queries and tasks start without a server."""
FROZEN = 0.2
"""Of a server's deaths, those that are none: it answers after a while."""
FROZEN_SECONDS = 14.0
"""At most: longer than most requests wait."""
DOWN_SECONDS = 8.0
"""Without a server, at most; mostly it is back within a second."""
DIED = re.compile(
    r"terminated with exception: (Connection reset|Broken pipe|Connection refused)? ?SQLSTATE|exited unexpectedly"
    r"|connect back"
)
"""What a query says that fails because a process that plans for it was killed. It is silent about its server."""
STUCK_SECONDS = 200.0
"""Without a row, although there are some: the query hangs."""


class Feeder(threading.Thread):
    """Feeds rows 1, 2, … until it is stopped. ``fed``: those that the server has confirmed."""

    def __init__(self, world: World, folder: Path):
        super().__init__(daemon=True)
        self.world, self.folder = world, folder
        self.fed = 0
        self.error: Exception | None = None
        self.may_put = threading.Lock()
        self._rows: dict[Path, int] = {}  # of each file of the sink
        self._ends = threading.Event()

    def run(self) -> None:
        while not self.error and not self._ends.wait(0.05):
            if self.fed - self.arrived() < AHEAD:
                self.put(range(self.fed + 1, self.fed + 11))

    def put(self, ids: Sequence[int]) -> None:
        """Tries until the server has confirmed; ``error``: why it never did."""
        end = time.monotonic() + 60
        while True:
            try:
                with self.may_put:
                    self.world.put(ids)
                self.fed = ids[-1]
                return
            except Exception as error:  # of whatever client: the server is down
                if time.monotonic() > end:
                    self.error = error
                    return
                time.sleep(0.1)

    def arrived(self) -> int:
        for path in committed(self.folder / "out"):
            if path not in self._rows:
                self._rows[path] = pq.read_metadata(path).num_rows
        return sum(self._rows.values())

    def stop(self) -> None:
        self._ends.set()
        self.join()


class Campaign(KilledJob):
    """The server is a victim, too."""

    module = "tests.kills.sources_job"
    bytes_between = 500  # a micro-batch without kills has 400
    drivers = 0.05
    late = 0.4
    servers = 0.25

    def __init__(self, folder: Path, kills: int, seed: int, world: World):
        self.world, self.early = world, kills * (1 - EARLY)
        self.feeder = Feeder(world, folder)
        self.feeder.start()
        self.seen, self.moved = 0, time.monotonic()
        super().__init__(folder, kills, seed)

    def kill(self) -> None:
        if self.chance.random() > self.servers:
            super().kill()
            return
        self.left -= 1
        if self.chance.random() < FROZEN:
            self.done["server frozen"] += 1
            self.world.freeze()
            time.sleep(FROZEN_SECONDS * self.chance.random())
            self.world.thaw()
            return
        self.done["server"] += 1
        with self.feeder.may_put if self.world.is_paused else nullcontext():
            self.world.kill()
            if self.left and self.chance.random() < BOTH:
                super().kill()
            time.sleep(DOWN_SECONDS * self.chance.random() ** 3)
            self.world.start()

    def kill_driver(self) -> None:
        """Half of them leave workers behind, which have rows, and a connection to the source."""
        if self.chance.random() < 0.5:
            super().kill_driver()
            return
        jvms = [pid for pid, command in marked(self.mark).items() if "pyspark-shell" in command]
        for pid in [self.driver.pid, *jvms]:
            os.kill(pid, signal.SIGKILL)
        self.driver.wait()

    def next_due(self) -> int:
        return self.written() if self.left > self.early else super().next_due()

    def look(self) -> None:
        """Ends the feed behind the last kill. Raises TimeoutError if the query hangs."""
        if self.feeder.error:
            raise RuntimeError("the server takes no rows") from self.feeder.error
        if not self.left and self.feeder.is_alive():
            self.feeder.stop()
            (self.folder / "fed.new").write_text(str(self.feeder.fed))
            (self.folder / "fed.new").rename(self.folder / "fed")
        written = self.written()
        if written != self.seen:
            self.seen, self.moved = written, time.monotonic()
        if time.monotonic() - self.moved > STUCK_SECONDS:
            raise TimeoutError(f"no row for {STUCK_SECONDS:g} s; {self.feeder.fed} rows fed")


def run(source: str, folder: Path, kills: int, seed: int) -> dict[str, object]:
    """One campaign below that folder."""
    (folder / "effects").mkdir(parents=True)
    begun, wrong = time.monotonic(), []
    with ExitStack() as held:
        made = WORLDS[source](folder, random.Random(seed), held)
        told = {"topology": made.topology, "options": made.options, "quiet": made.quiet}
        (folder / "campaign.json").write_text(json.dumps(told))
        campaign = Campaign(folder, kills, seed, made)
        try:
            campaign.run(300 + 15 * kills)
        except TimeoutError as error:
            wrong.append(str(error))
        finally:
            campaign.feeder.stop()
    found = faults(emitted(folder), campaign.feeder.fed, made.may_repeat)
    failures = folder / "failures"
    texts = [json.loads(line) for line in failures.read_text().splitlines()] if failures.exists() else []
    found["wrong"] += wrong + [each[:3000] for each in texts if not DIED.search(each)]
    if campaign.done["driver ended by itself"]:
        found["wrong"].append((folder / "driver.log").read_text()[-3000:])
    return {
        "source": source,
        "seed": seed,
        "variant": made.variant,
        "kills": dict(campaign.done),
        "queries_failed": len(texts),
        "seconds": round(time.monotonic() - begun),
        **found,
    }


def faults(rows: Iterable[tuple[int, str]], fed: int, may_repeat: bool) -> dict[str, Any]:
    """What is wrong with the rows of the sink, if rows 1 to ``fed`` were confirmed."""
    found, others = Counter[int](), []
    for n, said in rows:
        found[n] += 1
        if said != text(n):
            others.append((n, said))
    lost = [n for n in range(1, fed + 1) if n not in found]
    unknown = [n for n in found if not 1 <= n <= fed]
    twice = [n for n, count in found.items() if count > 1]
    wrong = {"lost": lost, "twice": [] if may_repeat else twice, "never fed": unknown, "another content": others}
    return {
        "rows": fed,
        "lost": len(lost),
        "duplicates": sum(found[n] - 1 for n in twice),
        "wrong": [f"{what}: {which[:20]}" for what, which in wrong.items() if which],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills.sources")
    parser.add_argument("sources", nargs="*", choices=[*WORLDS, []], default=list(WORLDS), metavar="NAME")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where files go, and stay. Default: a temporary one")
    given = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        for source in given.sources or WORLDS:
            folder = (given.folder or Path(scratch)) / source.replace(" ", "-")
            outcome = run(source, folder, given.kills, given.seed)
            print(json.dumps(outcome), flush=True)
            failed += bool(outcome["wrong"])
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
