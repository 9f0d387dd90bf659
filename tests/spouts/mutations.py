"""Bytes as crashes, disks and hands leave them: a seeded mutator, and how many of them a test looks at."""

import os
import random

COUNT = int(os.environ.get("PYSTORM_MUTATIONS", "300"))
"""Mutants per test; the thorough round is 10,000."""


def mutated(data: bytes, rng: random.Random) -> bytes:
    """``data`` with one to three changes; may be equal by chance."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        _change(changed, rng)
    return bytes(changed)


def _change(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    size = rng.choice([1, 1, 2, 4, 8, 64])
    kind = rng.randrange(7)
    if kind == 0:
        del data[at:]
    elif kind == 1:
        del data[at : at + size]
    elif kind == 2:
        data[at:at] = rng.randbytes(size)
    elif kind == 3 and at < len(data):
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 4:
        data[at : at + size] = bytes(len(data[at : at + size]))
    elif kind == 5:
        other = rng.randrange(len(data) + 1)
        data[at : at + size] = data[other : other + size]
    else:
        data[at : at + size] = rng.randbytes(len(data[at : at + size]))
