"""A writer in another process appends and rotates as fast as it can, while files are followed."""

import multiprocessing
import os
import random

import pytest

from pystorm_source.spouts import FilesSpout
from tests.spouts.drive import Driven, Query

LINES = 60_000


def line(number: int) -> str:
    return f"{number} " + "x" * (number * 7919 % 120)


def write(folder: str, seed: int, turns) -> None:
    """Lines in chunks that end anywhere, flushed each; app.log becomes app.log.1 and so on, once per ``turns``."""
    rng = random.Random(seed)
    path = os.path.join(folder, "app.log")
    data = b"".join(line(number).encode() + b"\n" for number in range(LINES))
    at = files = 0
    while at < len(data):
        with open(path, "ab", buffering=0) as file:
            while at < len(data) and (file.tell() < 60_000 or data[at - 1 : at] != b"\n"):
                size = rng.choice((1, 7, 300, 2000))
                file.write(data[at : at + size])
                at += size
            turns.acquire()
            for n in range(files, -1, -1):
                os.rename(f"{path}.{n}" if n else path, f"{path}.{n + 1}")
            files += 1
            if rng.random() < 0.5:
                file.write(b"late\n")


@pytest.mark.parametrize("seed", range(2))
def test_every_line_once_beside_a_rotating_writer(tmp_path, seed):
    forked = multiprocessing.get_context("fork")
    turns = forked.Semaphore(2)
    writer = forked.Process(target=write, args=(str(tmp_path), seed, turns), daemon=True)
    query = Query(Driven(FilesSpout.spec(path=tmp_path / "app.log*")), seed)
    query.still = False
    writer.start()
    try:
        rng = random.Random(seed)
        while writer.is_alive():
            query.step(limit=rng.choice((None, 2000, 50_000)), some=True)
            if turns.get_value() == 0:
                turns.release()
            if rng.random() < 0.05:
                query.restart()
        writer.join()
        assert writer.exitcode == 0
        query.drain()
    finally:
        writer.kill()
    found = [word for (word,) in query.rows]
    late = found.count("late")
    assert sorted(word for word in found if word != "late") == sorted(map(line, range(LINES)))
    raw = b"".join((tmp_path / name).read_bytes() for name in os.listdir(tmp_path))
    assert late == raw.count(b"late\n")
    assert query.batches > 20
