"""tail -F by hand: one file is followed by its inode to its end, then the next one; a crash repeats or loses rows."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.job_programs.lines import FIELDS, taken

FILE_ROWS, POLL_SECONDS = 100_000, 0.2


def lines_of(folder, done):
    """The lines of all files, the oldest first, until the writer is done."""
    read = set()
    while True:
        ended = Path(done).exists()
        found = [entry for entry in os.scandir(folder) if entry.inode() not in read]
        if not found and ended:
            return
        for entry in sorted(found, key=lambda entry: age(entry.name), reverse=True)[:1]:
            with suppress(FileNotFoundError), open(entry.path) as file:  # it may have got another name
                inode = os.fstat(file.fileno()).st_ino
                if inode not in read:
                    yield from follow(file, Path(folder, "app.log"), inode, done)
                    read.add(inode)
        if not found:
            time.sleep(POLL_SECONDS)


def age(name):
    return 0 if name == "app.log" else int(name.removeprefix("app.log."))


def inode_of(path):
    with suppress(FileNotFoundError):
        return path.stat().st_ino
    return None


def follow(file, live, inode, done):
    half = ""
    while True:
        # Order: whether it is still written to is asked before its end is looked for.
        finished = Path(done).exists() or inode_of(live) != inode
        for text in file:
            half += text
            if half.endswith("\n"):
                yield half[:-1]
                half = ""
        if finished:
            return
        time.sleep(POLL_SECONDS)


def run(logs, done, out, work):
    Path(out).mkdir()
    rows, files = [], 0
    for text in lines_of(logs, done):
        row = taken(text)
        if row:
            rows.append(row)
        if len(rows) >= FILE_ROWS:
            write(rows, Path(out, f"{files}.parquet"))
            rows, files = [], files + 1
    write(rows, Path(out, f"{files}.parquet"))


def write(rows, path):
    if rows:
        pq.write_table(pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=FIELDS), path)
