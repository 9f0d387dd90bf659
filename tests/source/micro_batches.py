"""Micro-batches and reports for the tests of the controller."""

from typing import NamedTuple

import numpy as np

from pystorm_source.source.admission.rate_samples import BatchSeen

SPOUT = "s"


class TaskSaid(NamedTuple):
    """A report as the controller reads it."""

    partition: str
    start: int = 0
    end: int = 100
    seconds: float = 0.1
    arrived: float = 1.0
    acked: int = 100
    failed: int = 0
    batch: str = "b"
    spout: str = SPOUT
    refused: int = 0
    paused: float = 0.0


def names(count):
    return {SPOUT: tuple(f"p{number:03d}" for number in range(count))}


def seen(sizes, reports=(), planned=0.0, asked=1.1, waited=False):
    """A micro-batch that has read so many offsets of each partition, from 0."""
    starts = np.zeros(len(sizes), np.int64)
    ends = np.array(sizes, np.int64)
    return BatchSeen("b", names(len(sizes)), starts, ends, planned, asked, waited, reports)


def played(sizes, seconds, slots=2, begin=0.05, failed=0):
    """A micro-batch whose tasks take so many seconds on so many slots, honestly reported."""
    free = [begin] * slots
    reports = []
    for row, (size, took) in enumerate(zip(sizes, seconds, strict=True)):
        if size:
            slot = free.index(min(free))
            free[slot] += took
            reports.append(TaskSaid(f"p{row:03d}", 0, size, took, free[slot], size - failed, failed))
    return seen(sizes, reports, asked=max(free) + 0.05)
