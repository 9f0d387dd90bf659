"""The acking campaign: random topologies, with random verdicts and delays, against what models of them say::

    python -m tests.acking [SEED ...] [--first SEED] [--rounds N] [--scheduler inline|threads]

A round is one topology, drawn by its seed as the tests of this folder draw theirs; its check, and by default its
scheduler, follow from the seed, too. Prints a JSON line for each round that failed, with what was drawn, and a summary;
exit status 1 if one has failed, 2 if one has not come to its end.
"""

import argparse
import faulthandler
import json
import logging
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.acking import test_any_topology as verdicts
from tests.acking import test_exactly_once as rows
from tests.acking.drawn import Draws, Seeded, Unfit

LONGEST_ROUND = 120.0
"""Seconds. Less: a busy machine ends the campaign. More: a round that hangs is found later."""
DRAWS = 1000
"""Cases that a seed draws until one fits; few of them do not."""
THREADS_EVERY = 8
"""One round of so many runs between threads. Fewer: starting threads takes most of the time."""


class Check(NamedTuple):
    draw: Callable[[Draws], Any]
    check: Callable[[Any, str], str]


CHECKS = {
    "verdicts": Check(verdicts.drawn_case, verdicts.check),
    "failures": Check(rows.drawn_case, rows.check_failures),
    "slow bolts": Check(rows.drawn_case, rows.check_slow_bolts),
    "dropped": Check(rows.drawn_case, rows.check_dropped),
}


class Round:
    """``outcome``: what it was like, or "failed"; ``case``: what was drawn last."""

    def __init__(self, seed: int, scheduler: str | None):
        self.seed = seed
        self.name = list(CHECKS)[seed % len(CHECKS)]
        self.scheduler = scheduler or ("threads" if seed // len(CHECKS) % THREADS_EVERY == 0 else "inline")
        self.case: Any = None
        self.outcome = ""
        self.unfit = 0

    def run(self) -> None:
        """Of the seed's cases the first that fits."""
        draws, chosen = Seeded(self.seed), CHECKS[self.name]
        while not self.outcome:
            self.case = chosen.draw(draws)
            try:
                self.outcome = chosen.check(self.case, self.scheduler)
            except Unfit:
                self.unfit += 1
                if self.unfit == DRAWS:
                    raise

    def described(self, **more: Any) -> str:
        shown = {"seed": self.seed, "check": self.name, "scheduler": self.scheduler, "case": repr(self.case)}
        return json.dumps({**shown, **more})


class Deadline:
    """Within it: ends the process if a round does not come to its end, with its case and all stacks."""

    def __init__(self) -> None:
        self.round: Round | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Deadline":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        # Else the last round would end a process that goes on with other things: one that runs tests, minutes later.
        self._over.set()
        self._thread.join()

    def begin(self, begun: Round) -> None:
        self.round = begun

    def _watch(self) -> None:
        while not self._over.is_set():
            watched = self.round
            if self._over.wait(LONGEST_ROUND):
                return
            if watched is not None and watched is self.round:
                print(watched.described(wrong=f"no end after {LONGEST_ROUND:g} s"), flush=True)
                faulthandler.dump_traceback()
                os._exit(2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acking")
    parser.add_argument("seeds", type=int, nargs="*", help="of the rounds; else --rounds of them from --first on")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--scheduler", choices=["inline", "threads"])
    given = parser.parse_args()
    seeds = given.seeds or range(given.first, given.first + given.rounds)
    logging.getLogger("pystorm").setLevel(logging.CRITICAL)  # what fails and is dropped is the rounds' own doing
    began = time.monotonic()
    total: Counter[str] = Counter()
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in CHECKS}
    with Deadline() as deadline:
        for seed in seeds:
            each = Round(seed, given.scheduler)
            deadline.begin(each)
            try:
                each.run()
            except Exception:
                each.outcome = "failed"
                print(each.described(wrong=traceback.format_exc()), flush=True)
            outcomes[each.name][each.outcome] += 1
            total.update({"failed": each.outcome == "failed", "unfit": each.unfit, each.scheduler: 1})
    counts = {name: dict(sorted(each.items())) for name, each in outcomes.items()}
    summary = {"rounds": len(seeds), **total, "outcomes": counts, "seconds": int(time.monotonic() - began)}
    print(json.dumps(summary), flush=True)
    return int(total["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
