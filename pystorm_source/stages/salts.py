"""Ints that make Spark's shuffle place rows: the hash of the i-th one leads to partition i.

``repartition(n, column)`` puts a row into partition ``hash(column) mod n``, with MurmurHash3 (x86, 32 bits) of the
value and seed 42 (``org.apache.spark.sql.catalyst.expressions.Murmur3Hash``, which cannot change because bucketed
tables rely on it). From Spark 4.1 on, ``repartitionById`` places rows without a hash.
"""

from functools import lru_cache
from itertools import count

_MASK = 0xFFFFFFFF
_SEED = 42


@lru_cache(maxsize=64)
def salts(partitions: int) -> tuple[int, ...]:
    """The int for each partition."""
    found: dict[int, int] = {}
    for value in count():
        found.setdefault(spark_hash(value) % partitions, value)
        if len(found) == partitions:
            return tuple(found[place] for place in range(partitions))
    raise AssertionError


def spark_hash(value: int) -> int:
    """Spark's ``hash(CAST(value AS int))``, for a value that is not negative and fits an int."""
    k = value * 0xCC9E2D51 & _MASK
    k = _rotated(k, 15) * 0x1B873593 & _MASK
    h = _rotated(_SEED ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
