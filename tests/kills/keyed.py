"""Kills around a bolt that keeps values of every declared type in its state::

    python -m tests.kills.keyed [--kills 200] [--seed 1]

Every process of Python's dies at moments that the seed draws: workers that have rows and states, those that plan, and
the driver with its JVM. With an odd seed keys have timers, too. Afterwards each row that was emitted, which says what
its key's state was before, and each state that is kept are what a model says: nothing lost, nothing twice, no other
value or type. Prints one line of JSON: what was found, and what is ``wrong``.
"""

import argparse
import json
import tempfile
from pathlib import Path

from tests.kills.keyed_job import emitted
from tests.kills.keyed_model import PER_BATCH, faults
from tests.kills.killed_job import KilledJob

SAID = (
    "exited unexpectedly",
    "Connection reset",
    "Broken pipe",
    "connect back",
    "Connection refused",
    "terminated with exception:  SQLSTATE",
)
"""Of what a query fails with when a process that plans for it is killed."""


class Campaign(KilledJob):
    module = "tests.kills.keyed_job"
    bytes_between = 500  # as a micro-batch without kills has
    drivers = 0.03  # each costs half a minute, until the query has read its checkpoint and states again
    late = 1.0  # as long as a micro-batch takes: kills hit plans, flushes and commits as well


def run(folder: Path, kills: int, seed: int) -> dict[str, object]:
    """One campaign below that folder."""
    (folder / "effects").mkdir(parents=True)
    timers, total = seed % 2 == 1, (2 * kills // 3 + 2) * PER_BATCH
    (folder / "campaign.json").write_text(json.dumps({"timers": timers, "total": total}))
    campaign = Campaign(folder, kills, seed)
    campaign.run(200 + 12 * kills)
    rows, states = list(emitted(folder)), json.loads((folder / "states.json").read_text())
    wrong = faults(total, timers, rows, dict(states))
    wrong += [f"{len(states)} states of {len(dict(states))} keys"] if len(dict(states)) < len(states) else []
    failures = folder / "failures"
    texts = [json.loads(line) for line in failures.read_text().splitlines()] if failures.exists() else []
    wrong += [text[:2000] for text in texts if not any(said in text for said in SAID)]
    return {
        "timers": timers,
        "kills": dict(campaign.done),
        "queries_failed": len(texts),
        "calls": campaign.written() // 10,
        "rows": len(rows),
        "states": len(states),
        "wrong": wrong[:10],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        print(json.dumps(run(Path(made) / "campaign", given.kills, given.seed)), flush=True)
