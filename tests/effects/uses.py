"""Kills around two sinks and two operators of one topology inside of foreachBatch: no two rows share a key, a row keeps
its key, and no dead letter is lost::

    python -m tests.effects.uses [--kills 200] [--seed 1]

Every process of Python's dies at moments that the seed draws: workers with rows, those that plan a write or commit it,
and the driver with its JVM. Prints one line of JSON: what was found, and what is ``wrong``.
"""

import argparse
import json
import os
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tests.effects.uses_job import USES
from tests.kills.killed_job import KilledJob

ROWS = 20  # of a micro-batch


class Campaign(KilledJob):
    """``seen``: content of each file of dead letters that was there once."""

    module = "tests.effects.uses_job"
    bytes_between = 2_000  # a micro-batch without kills has 1,700

    def __init__(self, folder: Path, kills: int, seed: int):
        self.seen: dict[Path, bytes] = {}
        super().__init__(folder, kills, seed)

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
    campaign.run(200 + 12 * kills)
    return check(campaign, batches)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        print(json.dumps(run(Path(made) / "campaign", given.kills, given.seed)), flush=True)
