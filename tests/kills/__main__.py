"""The kill harness::

    python -m tests.kills [SEED ...] [--first SEED] [--rounds N] [--folder FOLDER]

Prints a JSON line for each round, then a summary; exit status 1 if one has failed. A round is its seed: to see one
again, give its seed.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.kills.harness import Harness


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("seeds", type=int, nargs="*", help="of the rounds; else --rounds of them from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="where files go, and stay. Default: a temporary one")
    given = parser.parse_args()
    seeds = given.seeds or range(given.first, given.first + given.rounds)
    failed = 0
    kills: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kills-", ignore_cleanup_errors=True) as scratch:
        for outcome in Harness(given.folder or Path(scratch)).run(seeds):
            print(json.dumps(outcome), flush=True)
            failed += bool(outcome["wrong"])
            if outcome["killed"]:
                kills[f"{outcome['victim']} {outcome['point']}"] += 1
    print(json.dumps({"rounds": len(seeds), "failed": failed, "kills": dict(sorted(kills.items()))}), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # the gateway to a JVM that was ended would be closed once more, and complain
