"""What the demo has proven, and what it has not: three claims with their figures."""

import importlib.util
import shutil
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from pystorm_source.cli.show.acts import Kill, Slowdown
from pystorm_source.cli.show.display import kilobytes
from pystorm_source.cli.show.query import MicroBatch

TOP = 10
COLUMNS = 100
FIRST_STEPS = (
    ("pystorm-source quickstart my-job", "a project of your own"),
    ("pystorm-source draw pystorm_source.cli.word_count:WordCount", "text, Mermaid or SVG"),
    ("pystorm-source run pystorm_source.cli.word_count:WordCount -o path=DIR", "without Spark"),
)


class Claim(NamedTuple):
    """A sentence, and whether it is proven."""

    proven: bool
    text: str


class Proof(NamedTuple):
    """``counted``: word → count by the query; ``expected``: by the independent count; ``seconds``: from the writer's
    start to the last row; ``ran``: all micro-batches."""

    counted: dict[str, int]
    expected: Counter[str]
    ran: list[MicroBatch]
    seconds: float
    slowdown: Slowdown
    kill: Kill | None

    @property
    def rows(self) -> int:
        """The number of words, by the query's progress."""
        return sum(done.rows for done in self.ran)

    @property
    def match(self) -> bool:
        """Whether no row was lost or counted twice."""
        return self.counted == dict(self.expected) and self.rows == self.expected.total()

    @property
    def top(self) -> list[tuple[str, int]]:
        """The most frequent words."""
        return sorted(self.counted.items(), key=lambda item: (-item[1], item[0]))[:TOP]

    def claims(self) -> list[Claim]:
        """Returns the claims: overload, loss, exactness."""
        return [self._overload(), self._loss(), self._exactness()]

    @property
    def proven(self) -> bool:
        """Whether all claims are proven."""
        return all(claim.proven for claim in self.claims())

    def _overload(self) -> Claim:
        before, after = map(kilobytes, self.slowdown.budgets)
        followed = self.slowdown.followed
        if not followed:
            return Claim(False, f"overload: the bolt became ten times slower; the budget went from {before} to {after}")
        late = counted(self.slowdown.late, "micro-batch", "es")
        took = sorted(done.seconds for done in followed)
        return Claim(
            self.slowdown.shown,
            f"overload: the bolt became ten times slower; after {late} the budget went from {before} to {after}; the "
            f"next {len(took)} took {took[0]:.1f} to {took[-1]:.1f} s, the target is {followed[-1].aim:.1f} s",
        )

    def _loss(self) -> Claim:
        if self.kill is None:
            return Claim(False, "loss: no Python worker was found at work, so none was killed")
        tasks = counted(self.kill.failed_tasks, "task")
        return Claim(
            self.kill.failed_tasks > 0,
            f"loss: the Python worker {self.kill.pid} was killed in micro-batch {self.kill.micro_batch}; Spark ran "
            f"{tasks} again",
        )

    def _exactness(self) -> Claim:
        words = f"{self.rows:,} rows, {len(self.counted):,} different words"
        if self.match:
            return Claim(True, f"exactness: {words}: equal to a count by plain Python, without Spark and this source")
        wrong = {word for word in self.counted.keys() | self.expected if self.counted.get(word) != self.expected[word]}
        shown = min(wrong, default="")
        return Claim(
            False,
            f"exactness: {words}: NOT equal to a count by plain Python, which has {self.expected.total():,}; "
            f"{len(wrong):,} words differ, such as {shown!r}: {self.counted.get(shown, 0):,} and "
            f"{self.expected[shown]:,}",
        )

    def facts(self) -> dict[str, Any]:
        """Returns the facts for ``--json``."""
        return {
            "rows": self.rows,
            "seconds": round(self.seconds, 2),
            "batches": len(self.ran),
            "top": [list(pair) for pair in self.top],
            "match": self.match,
            "proven": self.proven,
            "claims": [claim._asdict() for claim in self.claims()],
            "budgets": list(self.slowdown.budgets),
            "kill": self.kill._asdict() if self.kill else None,
        }

    def lines(self) -> list[str]:
        """Returns lines for people: the words, the claims, and what to do next."""
        rate = self.rows / self.seconds if self.seconds else 0
        claims = [
            textwrap.fill(f"{'proven ' if proven else 'MISSING'}  {text}", COLUMNS, subsequent_indent=" " * 9)
            for proven, text in self.claims()
        ]
        activate = Path(sys.prefix, "bin", "activate")
        width = max(len(command) for command, _ in FIRST_STEPS)
        steps = [f"  {command:{width}}  {what}" for command, what in FIRST_STEPS]
        if shutil.which("pystorm-source") is None and activate.is_file():
            steps.insert(0, f"  . {activate}")
        if importlib.util.find_spec("pytest") is None:
            steps.insert(-len(FIRST_STEPS), f"  {'pip install pytest':{width}}  for the tests of your project")
        return [
            "",
            ", ".join(f"{word} {n:,}" for word, n in self.top),
            f"{self.rows:,} rows in {len(self.ran)} micro-batches and {self.seconds:.0f} s, {rate:,.0f} rows/s",
            "",
            *claims,
            "",
            "next:",
            *steps,
        ]


def counted(number: int, noun: str, plural: str = "s") -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}{'' if number == 1 else plural}"
