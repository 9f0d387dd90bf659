"""The check of a spout's answer to ``snapshot``."""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.errors import TopologyError, given

_EXAMPLES = {"heads": '{"north": (0, 120)}', "state": '{"newest": 17}'}


class CheckedSnapshot(NamedTuple):
    """A Snapshot that makes sense. ``bounds``: a row (earliest, latest) for each partition, in the order of heads."""

    heads: Mapping[str, tuple[int, int]]
    state: Mapping[str, int | str]
    retired: frozenset[str]
    bounds: npt.NDArray[np.int64]


def checked_snapshot(component: str, answer: Any) -> CheckedSnapshot:
    """The answer of that spout's ``snapshot``. Raises TopologyError if it makes no sense."""
    if not isinstance(answer, Snapshot):
        raise TopologyError(
            f"snapshot() of spout {component!r} must answer a Snapshot. Given: {given(answer)}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    for part in ("heads", "state"):
        if not isinstance(getattr(answer, part), Mapping):
            raise TopologyError(
                f"{part} of the Snapshot of spout {component!r} must be a mapping, such as {_EXAMPLES[part]}. "
                f"Given: {given(getattr(answer, part))}",
                code="PYSTORM_INVALID_COMPONENT",
            )
    for name, note in answer.state.items():
        if not isinstance(name, str) or isinstance(note, bool) or not isinstance(note, (int, str)):
            raise TopologyError(
                f"the state of spout {component!r} must hold ints and strs by str. Given: {given(name)}: {given(note)}",
                code="PYSTORM_INVALID_COMPONENT",
            )
    bounds = _bounds(answer.heads)
    if bounds is None:
        odd = next(name for name, head in answer.heads.items() if _bounds({name: head}) is None)
        raise TopologyError(
            f"spout {component!r} must name partitions by str and give ints 0 <= earliest <= latest < 2**63 for each. "
            f"Given: {given(odd)}: {given(answer.heads[odd])}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    _check_text(component, answer.heads)
    return CheckedSnapshot(answer.heads, answer.state, _retired(component, answer), bounds)


def _check_text(component: str, names: Collection[str]) -> None:
    """Checks names, which become columns, reports and files: in UTF-8, which has no lone surrogates."""
    if is_text("".join(names)):
        return
    odd = next(name for name in names if not is_text(name))
    raise TopologyError(
        f"spout {component!r} names a partition by text that UTF-8 cannot hold, as Python has the name of a file whose "
        "bytes are no UTF-8: quote such bytes, as urllib.parse.quote(os.fsencode(name)) does, and undo it in open(). "
        f"Given: {given(odd)}",
        code="PYSTORM_INVALID_COMPONENT",
    )


def is_text(name: str) -> bool:
    """Whether UTF-8 can hold it: it has no lone surrogate."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _retired(component: str, answer: Snapshot) -> frozenset[str]:
    given_names: Any = answer.retired
    try:
        retired = frozenset(given_names)
    except TypeError:
        retired = None
    if retired is None or isinstance(given_names, str) or not _are_all(str, retired):
        raise TopologyError(
            f"retired of the Snapshot of spout {component!r} must be a set of names of partitions. "
            f"Given: {given(given_names)}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    return retired


def _bounds(heads: Mapping[str, tuple[int, int]]) -> npt.NDArray[np.int64] | None:
    """The offsets as an array, None if a head makes no sense: all checked together, because there may be many."""
    pairs = list(heads.values())
    if not _are_all(str, heads) or not _are_all(tuple, pairs) or not set(map(len, pairs)) <= {2}:
        return None
    offsets = list(chain.from_iterable(pairs))
    if not set(map(type, offsets)) <= {int}:
        return None
    try:
        bounds = np.fromiter(offsets, np.int64, len(offsets)).reshape(-1, 2)
    except OverflowError:
        return None
    return bounds if np.all((bounds[:, 0] >= 0) & (bounds[:, 0] <= bounds[:, 1])) else None


def _are_all(kind: type, values: Iterable[Any]) -> bool:
    return all(issubclass(each, kind) for each in set(map(type, values)))
