"""What a spout may answer when it is asked for a snapshot."""

from typing import Any

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.errors import TopologyError


def checked_snapshot(component: str, answer: Any) -> Snapshot:
    """The answer of that spout's ``snapshot``. Raises TopologyError where it makes no sense."""
    if not isinstance(answer, Snapshot):
        raise TopologyError(f"snapshot() of spout {component!r} must answer a Snapshot. Given: {answer!r}")
    for partition, head in answer.heads.items():
        fits = isinstance(partition, str) and isinstance(head, tuple) and len(head) == 2
        if not fits or not all(type(offset) is int for offset in head) or not 0 <= head[0] <= head[1]:
            raise TopologyError(
                f"spout {component!r} must name partitions by str and give ints 0 <= earliest <= latest for each. "
                f"Given: {partition!r}: {head!r}"
            )
    for name, note in answer.memo.items():
        if not isinstance(name, str) or isinstance(note, bool) or not isinstance(note, (int, str)):
            raise TopologyError(
                f"the memo of spout {component!r} must hold ints and strs by str. Given: {name!r}: {note!r}"
            )
    return answer
