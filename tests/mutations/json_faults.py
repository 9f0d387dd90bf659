"""JSON as no sound writer leaves it: text that is no UTF-8, lone surrogates, deep nesting, huge numbers, names twice.

What any reader meets of bytes from outside, beside what crashes and disks do to them (``tests.spouts.mutations``).
"""

import random
import re

from tests.spouts.mutations import mutated

VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|NaN')
MEMBER = re.compile(rb'"(?:[^"\\]|\\.)*":')
NUMBERS = [
    *[b"9" * 5000, b"1e400", b"-1e400", b"NaN", b"Infinity", b"-Infinity", b"-0", b"0.1", b"1E2", b"01", b"1e308"],
    *[b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"-1"],
]
OTHERS = [b"{}", b"[]", b"null", b"true", b'""']
TEXTS = [b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\u0000"', b'"\x01"', b'""']


def spoiled(data: bytes, rng: random.Random) -> bytes:
    """JSON with one of these faults at some value or name; half of the time, bytes with faults of a disk instead."""
    if rng.random() < 0.5:
        return mutated(data, rng)
    places = list((VALUE if rng.random() < 0.8 else MEMBER).finditer(data))
    if not places:
        return mutated(data, rng)
    at = rng.choice(places)
    old = at[0]
    name, end = (old[:-1], b":") if old.endswith(b":") else (old, b"")
    kind = rng.randrange(6)
    if kind == 0:
        new = rng.choice(NUMBERS)
    elif kind == 1:
        new = rng.choice(TEXTS)
    elif kind == 2:
        deep = rng.choice([3, 900, 5_000, 100_000])
        new = rng.choice([b"[" * deep + b"]" * deep, b'{"a":' * deep + b"1" + b"}" * deep, b"[" * deep])
    elif kind == 3:
        new = (
            name[:-1] + rng.choice(TEXTS)[1:] if name.startswith(b'"') else rng.choice([b"{}", b"[]", b"null", b"true"])
        )
    elif kind == 4:
        new = rng.choice(places)[0].removesuffix(b":")
    else:  # the member, or the value, once more: a name that comes twice
        return data[: at.start()] + old + (b"0," if end else b",") + data[at.start() :]
    return data[: at.start()] + new + end + data[at.end() :]
