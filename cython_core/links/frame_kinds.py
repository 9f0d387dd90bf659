"""Kinds of frames on a link. worker/processes/frames.py says what each one carries."""

from enum import IntEnum


class Kind(IntEnum):
    """Down: TUPLES to LEASE. Up: WORK to STARTED."""

    TUPLES = 1
    CANCEL = 2
    TICK = 3
    BEGIN = 4
    END = 5
    HELD = 6
    BATCH = 7
    KEYS = 8
    LEASE = 9
    WORK = 32
    FAILED = 33
    STARTED = 36
