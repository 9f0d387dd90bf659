"""The mutation campaign::

    python -m tests.mutations [--count N] [--first SEED] [--only KIND] [--folder FOLDER]

Prints a JSON line for each kind of mutant, with what became of them and how many there were a second, then every mutant
that is wrong with how to see it again; exit status 1 if there is one. A mutant is its kind and seed.
"""

import argparse
import json
import logging
import sys
import tempfile
from pathlib import Path

from tests.mutations.campaign import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--count", type=int, default=1_000_000, help="mutants of all kinds together")
    parser.add_argument("--first", type=int, default=0, help="the first seed of each kind")
    parser.add_argument("--only", default="", help="a single kind")
    parser.add_argument("--folder", type=Path, help="where journals lie; quick in memory. Default: a temporary one")
    given = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())  # warnings are not the campaign's
    count = 0
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="mutations-", dir=given.folder) as scratch:
        for name, tally in run(Path(scratch), given.count, given.first, given.only):
            print(json.dumps({"kind": name, **tally.to_json()}), flush=True)
            count += tally.outcomes.total()
            wrong += tally.wrong
    print("".join(wrong[:20]), end="")
    print(json.dumps({"mutants": count, "wrong": len(wrong)}))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
