"""Columns of planning, from and to mappings by `Key`: what a test can read."""

import numpy as np

from pystorm_source.source.offsets.micro_batch import SourceState, Waiting
from pystorm_source.source.offsets.offsets import Key, Offsets
from pystorm_source.source.offsets.partition_index import UNKNOWN, PartitionIndex


def section(by_key):
    """Spout → partition → offset."""
    nested = {}
    for key, offset in by_key.items():
        nested.setdefault(key.component, {})[key.partition] = offset
    return nested


def flat(section):
    """Key → offset."""
    return {Key(component, name): offset for component, part in section.items() for name, offset in part.items()}


def offsets(at=None, begins=None, state=None, pinned=False, admission=None):
    """`Offsets` of mappings by key."""
    return Offsets(section(at or {}), section(begins or {}), state or {}, pinned, admission or {})


def index_of(keys):
    """The index of these partitions."""
    names = {}
    for key in sorted(keys):
        names[key.component] = (*names.get(key.component, ()), key.partition)
    return PartitionIndex(names)


def column(index, by_key, otherwise=UNKNOWN):
    """The values of a mapping, in the order of the index."""
    return np.array([by_key.get(key, otherwise) for key in index.keys()], np.int64)  # noqa: SIM118


def by_key(index, column):
    """The other way round."""
    return dict(zip(index.keys(), column.tolist(), strict=True))


def waits_of(waiting):
    """`Waiting` of partition → (start, head), of partitions that Spark knows."""
    index = index_of(waiting)
    start, head = (column(index, {key: pair[side] for key, pair in waiting.items()}) for side in (0, 1))
    return Waiting(index, start, start, head)


def world_of(heads, state=None, retired=()):
    """`SourceState` of partition → (earliest, latest)."""
    index = index_of(heads)
    earliest, latest = (column(index, {key: pair[side] for key, pair in heads.items()}) for side in (0, 1))
    over = {}
    for key in retired:
        over[key.component] = over.get(key.component, frozenset()) | {key.partition}
    return SourceState(index, earliest, latest, state or {}, over)
