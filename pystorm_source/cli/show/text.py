"""Prose for the demo, a writer that appends it to files like a busy log, and an independent word count."""

import random
import re
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

PROSE = Path(__file__).with_name("prose.txt")
"""The Declaration of Independence, the Gettysburg Address and the preamble of the Constitution of the United States."""
COLUMNS = 72
STEP_SECONDS = 0.1


def gather(size: int) -> list[bytes]:
    """Returns about ``size`` bytes of prose: lines of the text in a random order, the same in every run."""
    lines = [
        line.encode() + b"\n"
        for paragraph in PROSE.read_text(encoding="utf-8").split("\n\n")
        for line in textwrap.wrap(paragraph, COLUMNS)
    ]
    mean = sum(map(len, lines)) / len(lines)
    return random.Random(7).choices(lines, k=max(1, round(size / mean)))


class GrowingFiles:
    """Writes ``lines`` into ``files`` files of ``folder``: a first part at once, the rest bit by bit from a thread.

    The rest takes ``seconds``; then the writer starts over at the same speed, until ``finish``. Bits
    end anywhere, in the middle of lines and of characters.
    """

    def __init__(self, folder: Path, lines: list[bytes], files: int = 2, first: float = 0.4, seconds: float = 15.0):
        self.folder = folder
        self._texts = [b"".join(lines[i::files]) for i in range(files)]
        self._written = [int(len(text) * first) for text in self._texts]
        self.per_second = (self.size - self.written) / max(seconds, STEP_SECONDS)
        self._finish = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._append, name="demo-writer", daemon=True)
        for path, text, written in zip(self.paths, self._texts, self._written, strict=True):
            path.write_bytes(text[:written])

    @property
    def paths(self) -> list[Path]:
        return [self.folder / f"text-{i}.log" for i in range(len(self._texts))]

    @property
    def size(self) -> int:
        """Bytes of the lines."""
        return sum(len(text) for text in self._texts)

    @property
    def written(self) -> int:
        """Bytes so far."""
        return sum(self._written)

    @property
    def writing(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Begins to append."""
        self._thread.start()

    def finish(self) -> None:
        """Lets the writer end once all lines are written, including any line that it has begun."""
        self._finish.set()

    def stop(self) -> None:
        """Ends the writer if it has not ended by itself."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _append(self) -> None:
        chance = random.Random(7)
        began = time.monotonic()
        first = list(self._written)
        handles = [path.open("ab", buffering=0) for path in self.paths]
        try:
            whole = False
            while not whole and not self._stop.wait(STEP_SECONDS * chance.uniform(0.5, 1.5)):
                grown = int((time.monotonic() - began) * self.per_second / len(handles))
                whole = self._finish.is_set() and all(
                    at + grown >= len(text) for at, text in zip(first, self._texts, strict=True)
                )
                for i, (handle, text) in enumerate(zip(handles, self._texts, strict=True)):
                    begin, end = self._written[i], max(self._written[i], first[i] + grown)
                    if whole and end % len(text):
                        end += text.index(b"\n", end % len(text) - 1) + 1 - end % len(text)
                    handle.write(_endless(text, begin, end))
                    self._written[i] = end
        finally:
            for handle in handles:
                handle.close()

    def count_words(self) -> Counter[str]:
        """Counts the words of entire files without a topology, Spark or anything else of this package."""
        counts: Counter[str] = Counter()
        for path in self.paths:
            counts.update(re.findall("[a-z]+", path.read_text(encoding="utf-8").lower()))
        return counts


def _endless(text: bytes, begin: int, end: int) -> bytes:
    """Returns these bytes of the endlessly repeated text."""
    turns = (end - 1) // len(text) - begin // len(text) + 1
    at = begin % len(text)
    return (text * turns)[at : at + end - begin]
