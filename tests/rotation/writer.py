"""A writer of log files that rotates them: every step is one call that other processes may see the effect of."""

import gzip
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

KINDS = ("rename", "gzip in place", "gzip renamed into place", "copytruncate", "copytruncate, then gzip")
BANNER = "=== a new log ==="


class Writer:
    """``Writer(folder, kind, seed, most, may_delete)``: writes ``app.log`` in ``folder`` and rotates it ``most`` times.

    ``steps()`` does one thing after another. ``written``: the lines that readers must find, and how often.
    ``may_delete``: whether all of these lines were read, so that a file with them is not missed. ``may_rotate``:
    whether a file with these lines may be rotated now.
    """

    def __init__(
        self, folder: Path, kind: str, seed: int, most: int, may_delete: Callable[[set[str]], bool] = lambda _: False
    ):
        self.written: Counter[str] = Counter()
        self.rotations = 0
        self.may_rotate: Callable[[set[str]], bool] = lambda _: True
        self._log = folder / "app.log"
        self._kind = kind
        self._random = rng = random.Random(seed)
        self._most = most
        self._may_delete = may_delete
        self._number = 0
        self._banner = rng.random() < 0.5
        self._per_file = rng.choice((3, 30, 300))
        self._pieces = rng.choice((1, 3, 8))
        self._compressed_from = rng.choice((1, 1, 2))  # 2: delaycompress
        self._hidden = rng.random() < 0.5
        # A copy that is deleted before the query looks again might have had more lines than it has seen.
        self._keeps = 50 if kind.startswith("copytruncate") else rng.choice((3, 5, 50))

    def steps(self) -> Iterator[None]:
        while self.rotations < self._most:
            yield from self._file()
            while not self.may_rotate(lines_of(self._log)):
                yield
            yield from self._rotation()
            self.rotations += 1
        yield from self._file()

    def _line(self) -> bytes:
        self._number += 1
        line = f"{self._number} " + "x" * self._random.choice((0, 3, 40, 40, 200))
        self.written[line] += 1
        return line.encode() + b"\n"

    def _file(self) -> Iterator[None]:
        """Lines into app.log, in chunks that end anywhere, the last one with a line."""
        text = b""
        if self._banner:
            self.written[BANNER] += 1
            text = BANNER.encode() + b"\n"
        text += b"".join(self._line() for _ in range(self._random.randint(1, self._per_file)))
        with open(self._log, "ab", buffering=0) as file:
            yield
            while text:
                size = self._random.choice((1, 20, 300, 2000, 2000))
                file.write(text[:size])
                text = text[size:]
                yield

    def _rotation(self) -> Iterator[None]:
        old = sorted(self._old(), reverse=True)
        for n, path in old:
            if n >= self._keeps and self._may_delete(lines_of(path)):
                os.remove(path)
            else:
                os.rename(path, self._named(n + 1, path.suffix == ".gz"))
            yield
        first = self._named(1)
        if self._kind.startswith("copytruncate"):
            yield from self._copied(self._log, first)
            os.truncate(self._log, 0)
        else:
            with open(self._log, "ab", buffering=0) as late:
                os.rename(self._log, first)
                yield
                if self._random.random() < 0.5:
                    late.write(self._line())  # a writer that has the file open goes on for a while
        yield
        packed = self._named(self._compressed_from)
        if "gzip" in self._kind and packed.exists():
            yield from self._packed(packed)

    def _old(self) -> list[tuple[int, Path]]:
        found = [path for path in self._log.parent.glob("app.log.*") if path.suffix != ".tmp"]
        return [(int(path.name.split(".")[2]), path) for path in found]

    def _named(self, n: int, packed: bool = False) -> Path:
        return self._log.with_name(f"app.log.{n}{'.gz' if packed else ''}")

    def _copied(self, source: Path, target: Path) -> Iterator[None]:
        """What cp does; nothing is written meanwhile."""
        yield from self._in_pieces(target, source.read_bytes())

    def _packed(self, path: Path) -> Iterator[None]:
        """What gzip does: writes beside the file, keeps its time, removes it. Or under another name at first."""
        target = path.with_name(path.name + ".gz")
        aside = target
        if self._kind == "gzip renamed into place":
            aside = path.with_name(f"{'.' if self._hidden else ''}{target.name}.tmp")
        modified = os.stat(path).st_mtime_ns
        yield from self._in_pieces(aside, gzip.compress(path.read_bytes()))
        os.utime(aside, ns=(modified, modified))
        yield
        if aside != target:
            os.rename(aside, target)
            yield
        os.remove(path)
        yield

    def _in_pieces(self, path: Path, data: bytes) -> Iterator[None]:
        size = len(data) // self._pieces + 1
        with open(path, "xb", buffering=0) as file:
            yield
            for at in range(0, len(data), size):
                file.write(data[at : at + size])
                yield


def lines_of(path: Path) -> set[str]:
    data = path.read_bytes()
    return set((gzip.decompress(data) if path.suffix == ".gz" else data).decode().split("\n")[:-1])
