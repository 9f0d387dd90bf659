"""What a spout may answer when it is asked for a snapshot."""

from collections.abc import Iterable, Mapping
from itertools import chain
from operator import le
from typing import Any

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.errors import TopologyError


def checked_snapshot(component: str, answer: Any) -> Snapshot:
    """The answer of that spout's ``snapshot``. Raises TopologyError where it makes no sense."""
    if not isinstance(answer, Snapshot):
        raise TopologyError(f"snapshot() of spout {component!r} must answer a Snapshot. Given: {answer!r}")
    if not _are_heads(answer.heads):
        for partition, head in answer.heads.items():
            if not _are_heads({partition: head}):
                raise TopologyError(
                    f"spout {component!r} must name partitions by str and give ints 0 <= earliest <= latest < 2**63 "
                    f"for each. Given: {partition!r}: {head!r}"
                )
    for name, note in answer.memo.items():
        if not isinstance(name, str) or isinstance(note, bool) or not isinstance(note, (int, str)):
            raise TopologyError(
                f"the memo of spout {component!r} must hold ints and strs by str. Given: {name!r}: {note!r}"
            )
    return answer


def _are_heads(heads: Mapping[str, tuple[int, int]]) -> bool:
    """Whether all are what they should be: for a hundred thousand partitions in milliseconds."""
    if not heads:
        return True
    pairs = list(heads.values())
    if not _are_all(str, heads) or not _are_all(tuple, pairs):
        return False
    offsets = list(chain.from_iterable(pairs))
    if set(map(len, pairs)) != {2} or set(map(type, offsets)) != {int} or max(offsets) >= 2**63:
        return False
    return min(offsets) >= 0 and all(map(le, offsets[::2], offsets[1::2]))


def _are_all(kind: type, values: Iterable[Any]) -> bool:
    return all(issubclass(each, kind) for each in set(map(type, values)))
