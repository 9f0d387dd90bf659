"""The rotation campaign::

    python -m tests.rotation [SEED ...] [--first SEED] [--sets N]

A set is a writer that rotates its log (by renaming, by copying and truncating, with gzip in place or renamed into
place) and a query that follows it, whose tasks and driver are killed; what it gave is compared with what was written.
Prints a JSON line for each set, then a summary; exit status 1 if one is not exact. A set is its seed.
"""

import argparse
import json
import logging
import sys
from collections import Counter

from tests.rotation.sets import run_set


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rotation")
    parser.add_argument("seeds", type=int, nargs="*", help="of the sets; else --sets of them from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sets", type=int, default=200)
    given = parser.parse_args()
    seeds = given.seeds or range(given.first, given.first + given.sets)
    logging.getLogger("pystorm").setLevel(logging.ERROR)  # what is skipped and waited for is the sets' own doing
    total: Counter[str] = Counter()
    for seed in seeds:
        outcome = run_set(seed)
        print(json.dumps(outcome.described()), flush=True)
        total.update(exact=outcome.is_exact, refused=outcome.refused is not None)
        for name in ("lines", "rotations", "kills", "lost", "doubled", "torn", "seconds"):
            total[name] += getattr(outcome, name)
    print(json.dumps({"sets": len(seeds), **total}), flush=True)
    return int(total["exact"] < len(seeds))


if __name__ == "__main__":
    sys.exit(main())
