"""A campaign: mutants by seed, one after the other, each of a kind; what is wrong with one is said with its seed.

A kind takes a random generator and answers what became of one mutant:

    same      it was accepted, and means what the original means
    refused   an error of ``pystorm_source.errors`` said why
    other     it was accepted as something else that is valid, for nothing can tell: a record without a checksum, an
              option with another value. What is checked then stands beside each kind.

Anything else is wrong: another exception, a hang, tuples that are missing or come twice without a word.
"""

import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutations.journals import Journals
from tests.mutations.messages import mutated_granted, mutated_observed, mutated_state, mutated_wish
from tests.mutations.offsets import mutated_offset
from tests.mutations.options import Requests, mutated_config, mutated_option, mutated_position
from tests.mutations.records import Records
from tests.mutations.records_of_runs import RunFiles, mutated_answer
from tests.mutations.reports import mutated_frame, mutated_report

SECONDS = 20
"""After which a mutant counts as a hang; the slowest take some hundredths of a second."""

Kind = Callable[[random.Random], str]


def kinds(folder: Path) -> dict[str, tuple[int, Kind]]:
    """Kind → its share of a campaign, and what looks at one mutant. Files lie in ``folder``."""
    journals, records = Journals(folder), Records()
    return {
        "offset": (21, mutated_offset),
        "option": (14, mutated_option),
        "config": (4, mutated_config),
        "position": (4, mutated_position),
        "request": (1, Requests(folder).mutated),
        "journal": (4, journals.mutated),
        "report": (10, mutated_report),
        "observed": (1, mutated_observed),
        "frame": (10, mutated_frame),
        "run": (2, RunFiles(folder).mutated),
        "answer": (4, mutated_answer),
        "wish": (4, mutated_wish),
        "granted": (4, mutated_granted),
        "state": (4, mutated_state),
        "letter": (1, records.letters),
        "json": (4, records.json),
        "avro": (1, records.avro),
        "protobuf": (1, records.protobuf),
        "lines": (3, records.lines),
        "csv": (2, records.csv),
        "ndjson": (1, records.ndjson),
    }


class Hang(BaseException):
    """No error that any code could catch by mistake."""


@dataclass
class Tally:
    """What became of the mutants of one kind, and how long they took."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        count = self.outcomes.total()
        return {"mutants": count, **dict(sorted(self.outcomes.items())), "per_second": round(count / self.seconds)}


def run(folder: Path, count: int, first: int = 0, only: str = "") -> Iterator[tuple[str, Tally]]:
    """Looks at about ``count`` mutants, shared among the kinds; those of a kind have the seeds from ``first`` on."""
    chosen = {name: kind for name, kind in kinds(folder).items() if not only or name == only}
    shares = sum(share for share, _ in chosen.values())
    for name, (share, kind) in chosen.items():
        yield name, examine(name, kind, range(first, first + -(-count * share // shares)))


def examine(name: str, kind: Kind, seeds: range) -> Tally:
    """One kind."""
    tally = Tally()
    began = time.perf_counter()
    with _alarm():
        for seed in seeds:
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                outcome = kind(random.Random(f"{name} {seed}"))
            except (Exception, Hang):
                outcome = "wrong"
                tally.wrong.append(f"--only {name} --first {seed} --count 1\n{traceback.format_exc(limit=-6)}")
            tally.outcomes[outcome] += 1
    tally.seconds = time.perf_counter() - began
    return tally


@contextmanager
def _alarm() -> Iterator[None]:
    def hang(signum: int, frame: Any) -> None:
        raise Hang(f"after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, hang)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
