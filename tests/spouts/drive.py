"""What the tests of spouts share: a spout that is read as Spark reads it."""

import random

from pystorm_source.testing.driven import Driven

__all__ = ["Driven", "Query", "append"]


def append(path, *lines, end="\n"):
    """Writes lines to the end of a file."""
    with open(path, "a", newline="") as file:
        file.write("".join(line + end for line in lines))


class Query:
    """What Spark and admission do with a spout, by random choice: all it remembers is ``known`` and ``state``."""

    def __init__(self, driven: Driven, seed: int = 0):
        self.driven = driven
        self.random = random.Random(seed)
        self.known: dict[str, int] = {}
        self.state: dict[str, int | str] = {}
        self.rows: list[tuple] = []
        self.batches = 0
        self.still = True  # nothing is written meanwhile: a snapshot is the same when taken again

    def restart(self) -> None:
        """The driver process dies; the checkpoint stays."""
        self.driven.driver = self.driven.instance("driver")

    def plan(self, limit: int | None = None, some: bool = False) -> list[tuple[str, int, int]]:
        """One micro-batch planned: ranges, after which offset and state are stored. ``some``: partitions are left out
        at random.
        """
        driver = self.driven.driver
        snapshot = driver.snapshot(dict(self.known), dict(self.state))
        assert not self.still or driver.snapshot(dict(self.known), dict(self.state)) == snapshot
        after = {name: offset for name, offset in self.known.items() if name in snapshot.heads}
        ranges = []
        for name in self.random.sample(sorted(snapshot.heads), len(snapshot.heads)):
            earliest, latest = snapshot.heads[name]
            start = self.known.get(name, earliest)
            assert earliest <= start <= latest, f"{name} went backwards"
            if start == latest or (some and self.random.random() < 0.3):
                after[name] = start
                continue
            end = latest
            if limit is not None:
                cut = min(latest, start + self.random.randint(1, limit))
                if cut < latest:
                    end = driver.align(name, start, cut)
                    assert start <= end <= latest
                    end = latest if end == start else end
            if end > start:
                ranges.append((name, start, end))
            after[name] = end
        vanished = self.known.keys() - snapshot.heads.keys() - snapshot.retired
        assert not vanished, f"unread bytes of {vanished} are gone"
        if ranges:
            for name in snapshot.retired:
                after.pop(name, None)
            self.known, self.state = after, dict(snapshot.state)
            self.batches += 1
        return ranges

    def read(self, ranges: list[tuple[str, int, int]]) -> list[tuple]:
        """Tasks read the ranges, cut further at random."""
        rows = []
        for name, start, end in ranges:
            cuts = self.driven.driver.split(name, start, end, self.random.randint(1, 4))
            for low, high in zip([start, *cuts], [*cuts, end], strict=True):
                rows += [values for _, values in self.driven.read(name, low, high)]
        self.rows += rows
        return rows

    def step(self, limit: int | None = None, some: bool = False) -> list[tuple]:
        return self.read(self.plan(limit, some))

    def drain(self, limit: int | None = None) -> list[tuple]:
        """Micro-batches until there is nothing left."""
        rows = []
        while ranges := self.plan(limit):
            rows += self.read(ranges)
        return rows
