"""Kills around two sinks and two operators of one topology inside of foreachBatch: no two rows share a key, a row keeps
its key, and no dead letter is lost::

    python -m tests.effects.uses [--kills 200] [--seed 1]

Every process of Python's dies at moments that the seed draws: workers with rows, those that plan a write or commit it,
and the driver with its JVM. Prints one line of JSON: what was found, and what is ``wrong``.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.effects.uses_job import USES
from tests.kills.processes import MARK, marked, parent_of

ROOT = Path(__file__).resolve().parents[2]
ROWS = 20  # of a micro-batch
BYTES_BETWEEN = 2_000  # of effects from one kill to the next at most; a micro-batch without kills has 1,700
DRIVERS = 0.08  # of the kills; the next driver takes ten seconds to start


class Campaign:
    """``seen``: content of each file of dead letters that was there once."""

    def __init__(self, folder: Path, kills: int, seed: int):
        self.folder = folder
        self.left = kills
        self.chance = random.Random(seed)
        self.mark = f"uses-{os.getpid()}"
        self.done: Counter[str] = Counter()
        self.seen: dict[Path, bytes] = {}
        self.driver = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """A driver."""
        command = [sys.executable, "-m", "tests.effects.uses_job", str(self.folder)]
        environment = {**os.environ, MARK: self.mark, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
        log = (self.folder / "driver.log").open("ab")
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)

    def run(self, seconds: float) -> None:
        """Until the query has read all, restarted as often as it has to be. Raises TimeoutError after so long."""
        end = time.monotonic() + seconds
        due = self.next_due()
        while (code := self.driver.poll()) != 0:
            if time.monotonic() > end:
                raise TimeoutError(f"not over after {seconds:g} s: {dict(self.done)}")
            if code is not None:
                self.end_driver()
                self.driver = self.start()
            if self.left and self.written() >= due and (workers := self.workers()):
                self.kill(workers)
                due = self.next_due()
            self.look()
            time.sleep(0.02)
        self.look()

    def written(self) -> int:
        """Bytes of the effects so far."""
        return sum(path.stat().st_size for path in (self.folder / "effects").iterdir())

    def next_due(self) -> int:
        """Bytes of effects at which the next process dies: kills come where there is something to lose."""
        return self.written() + self.chance.randrange(1, BYTES_BETWEEN)

    def workers(self) -> list[int]:
        """Processes of Python that Spark has forked: with rows, a plan of a write, or its commit."""
        found = marked(self.mark)
        daemons = {pid for pid, command in found.items() if "pyspark.daemon" in command or "pystorm-python" in command}
        return sorted(pid for pid in daemons if parent_of(pid) in daemons)

    def kill(self, workers: list[int]) -> None:
        self.left -= 1
        if self.chance.random() < DRIVERS:
            self.done["driver"] += 1
            self.end_driver()
            self.driver = self.start()
            return
        self.done["worker"] += 1
        try:
            os.kill(self.chance.choice(workers), signal.SIGKILL)
        except ProcessLookupError:
            self.done["gone before"] += 1

    def end_driver(self) -> None:
        for pid in [self.driver.pid, *marked(self.mark)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.driver.wait()

    def look(self) -> None:
        """Remembers the files of dead letters that there are."""
        for path in self.folder.glob("letters-*/*.jsonl"):
            if path not in self.seen:
                self.seen[path] = path.read_bytes()


def check(campaign: Campaign, batches: int) -> dict[str, object]:
    """What was found."""
    wrong = []
    rows_of, keys_of = defaultdict(set), defaultdict(set)
    calls = 0
    for path in (campaign.folder / "effects").iterdir():
        for line in path.read_text().splitlines():
            door, key, row = json.loads(line)
            calls += 1
            rows_of[door.partition("-")[0], key].add((door, row))
            keys_of[door, row].add(key)
    shared = {key: rows for key, rows in rows_of.items() if len(rows) > 1}
    changed = {row: keys for row, keys in keys_of.items() if len(keys) > 1}
    good = [row for row in range(batches * ROWS) if row % 5 != 3]
    doors = [(f"{door}-{use}", rest) for door in ("sink", "apply") for use, rest in USES.items()]
    expected = [(door, row) for door, rest in doors for row in good if row % 2 == rest]
    missing = [each for each in expected if each not in keys_of]
    wrong += [f"{len(shared)} keys of several rows: {list(shared.items())[:3]}"] if shared else []
    wrong += [f"{len(changed)} rows with several keys: {list(changed.items())[:3]}"] if changed else []
    wrong += [f"no effect of {missing[:5]}"] if missing else []
    lost = [path.name for path, data in campaign.seen.items() if not path.exists() or path.read_bytes() != data]
    wrong += [f"files of dead letters have vanished or changed: {lost[:5]}"] if lost else []
    letters = 0
    for door in ("sink", "apply"):
        lines = [
            json.loads(line)
            for path in (campaign.folder / f"letters-{door}").glob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        letters += len(lines)
        found = Counter(
            json.loads(values)[0]
            for *_, values in {(each["batch"], each["partition"], each["offset"], each["values"]) for each in lines}
        )
        if found != Counter(row for row in range(batches * ROWS) if row % 5 == 3):
            wrong.append(f"dead letters of {door}: {len(found)} rows")
    return {
        "batches": batches,
        "kills": dict(campaign.done),
        "calls": calls,
        "rows": len(keys_of),
        "letters": letters,
        "letter_files": len(campaign.seen),
        "wrong": wrong,
    }


def run(folder: Path, kills: int, seed: int) -> dict[str, object]:
    """One campaign below that folder."""
    (folder / "in").mkdir(parents=True)
    (folder / "effects").mkdir()
    batches = kills + 2
    for number in range(batches):
        rows = range(number * ROWS, (number + 1) * ROWS)
        path = folder / "in" / f"{number:05}.json"
        path.write_text("".join(f'{{"id": {row}}}\n' for row in rows))
        os.utime(path, (1_700_000_000 + number,) * 2)
    campaign = Campaign(folder, kills, seed)
    try:
        campaign.run(200 + 12 * kills)
    finally:
        campaign.end_driver()
    return check(campaign, batches)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        print(json.dumps(run(Path(made) / "campaign", given.kills, given.seed)), flush=True)
