"""Since when a reader of a side's output has seen a row: by the file that has the row, or by what names the file.

A file of Parquet is readable since its last change (``ctime``): its footer is written last, or it gets its name when it
is complete. A file of Spark's file sink is readable since the log of the sink names it. CSV is readable as far as it
reaches, so the size of the file is looked at while it grows.
"""

import csv
import json
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq


class Found(NamedTuple):
    """An order in the output. ``since``: seconds since 1970."""

    number: int
    cents: int
    since: float


class Growth:
    """The sizes of a file that grows, and when they were first seen."""

    def __init__(self, path: Path):
        self.path, self.sizes, self.times = path, [0], [0.0]

    def look(self, now: float) -> None:
        """Call it often: a row counts as readable since the first call that sees it."""
        size = self.path.stat().st_size if self.path.exists() else 0
        if size > self.sizes[-1]:
            self.sizes.append(size)
            self.times.append(now)


def found(out: Path, growth: Growth) -> Iterator[Found]:
    """The orders that can be read by now. ``growth``: of the output's CSV, if it is CSV."""
    if growth.path.exists():
        yield from _of_csv(growth)
        return
    for path, since in _files(out).items():
        rows = pq.read_table(path, columns=["number", "cents"])
        for number, cents in zip(rows["number"].to_pylist(), rows["cents"].to_pylist(), strict=True):
            yield Found(number, cents, since)


def _of_csv(growth: Growth) -> Iterator[Found]:
    lines = growth.path.read_bytes()[: growth.sizes[-1]].splitlines(keepends=True)
    end, head = 0, [] if not lines else next(csv.reader([lines[0].decode()]))
    for line in lines:
        end += len(line)
        if end > len(lines[0]) and line.endswith(b"\n"):
            row = dict(zip(head, next(csv.reader([line.decode()])), strict=True))
            yield Found(int(row["number"]), int(row["cents"]), growth.times[bisect_left(growth.sizes, end)])


def _files(out: Path) -> dict[Path, float]:
    log, files = out / "_spark_metadata", dict[Path, float]()
    if not log.exists():
        return {path: path.stat().st_ctime for path in out.rglob("[!.]*") if path.is_file() and _is_complete(path)}
    for entry in log.glob("[!.]*"):
        since = entry.stat().st_ctime
        for line in entry.read_text().splitlines()[1:]:
            path = out / Path(json.loads(line)["path"]).name
            files[path] = min(since, files.get(path, since))  # each tenth entry names the files of all before it, too
    return files


def _is_complete(path: Path) -> bool:
    content = path.read_bytes()
    return len(content) > 8 and content[:4] == content[-4:] == b"PAR1"
