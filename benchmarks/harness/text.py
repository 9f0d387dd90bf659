"""Texts of lines of ten words, the rarer the later they come in the vocabulary (Zipf), and how often they have each."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

FILES = 8
WORDS_PER_LINE = 10
VOCABULARY = 50_000


class Text(NamedTuple):
    """Files, their bytes, and how often they have each word."""

    paths: list[Path]
    sizes: list[int]
    counts: list[Counter[str]]

    def part(self, files: int) -> "Text":
        return Text(self.paths[:files], self.sizes[:files], self.counts[:files])

    @property
    def bytes(self) -> int:
        return sum(self.sizes)

    @property
    def total(self) -> dict[str, int]:
        return dict(sum(self.counts, Counter()))


def written(folder: Path, size: int) -> Text:
    """About so many bytes, in as many files as there are to be."""
    draws = np.random.default_rng(1)
    words = np.array([f"{'abcdefghij'[n % 10]}word{n}" for n in range(VOCABULARY)], object)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    ends = np.cumsum(weights / weights.sum())
    text = Text([], [], [])
    for number in range(FILES):
        path = folder / f"part-{number}.txt"
        counts = np.zeros(VOCABULARY, np.int64)
        left = size // FILES
        with path.open("w") as file:
            while left > 0:
                places = np.searchsorted(ends, draws.random((10_000, WORDS_PER_LINE)))
                counts += np.bincount(places.ravel(), minlength=VOCABULARY)
                left -= file.write("".join(f"{' '.join(line)}\n" for line in words[places].tolist()))
        text.paths.append(path)
        text.sizes.append(path.stat().st_size)
        text.counts.append(Counter({words[n]: int(counts[n]) for n in np.flatnonzero(counts)}))
    return text
