"""What the page draws, as JSON: the complete last record, and a few numbers of each earlier one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from pystorm_source.records.record import ErrorRecord, PystormProgress
from pystorm_source.types.json_values import utf8_json

MOST_POINTS = 300
"""Micro-batches in the charts. More: the page grows by 60 bytes each. Less: the past is shorter, or rougher."""
CAPACITY_POINTS = 60
"""Micro-batches whose capacity is drawn for each component. More: 5 bytes each, times components."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """Columns over micro-batches, oldest first. ``at``: seconds since 1970; None: unknown."""

    batch: tuple[int, ...] = ()
    at: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    target: tuple[float | None, ...] = ()
    rows: tuple[int, ...] = ()
    backlog: tuple[int | None, ...] = ()
    budget: tuple[int | None, ...] = ()
    limit: tuple[int | None, ...] = ()
    pressure: tuple[float | None, ...] = ()
    reason: tuple[str, ...] = ()


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the page draws.

    ``title``: the topology's name, or the query's. ``run``: names the run. ``state``: ``running``, ``not running``,
    ``ended``, or empty if it is not known. ``last``: the newest record; ``counted_seconds``: how long the micro-batch
    of its counts took; ``series``: of all records; ``capacity``: component → its last ones; ``errors``: component → its
    last error in any of the records. ``runs``: id → title of the runs to choose from.
    """

    title: str = ""
    run: str = ""
    state: str = ""
    last: PystormProgress | None = None
    counted_seconds: float = 0.0
    series: Series = msgspec.field(default_factory=Series)
    capacity: dict[str, tuple[float | None, ...]] = msgspec.field(default_factory=dict)
    errors: dict[str, ErrorRecord] = msgspec.field(default_factory=dict)
    runs: dict[str, str] = msgspec.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        records: Sequence[PystormProgress],
        *,
        title: str = "",
        run: str = "",
        state: str = "",
        runs: dict[str, str] | None = None,
    ) -> "View":
        """``records``: of one run, oldest first; ``title`` and ``run``: if no record has them."""
        if not records:
            return cls(title=title, run=run, state=state, runs=runs or {})
        last, before = records[-1], records[max(0, len(records) - 2)]
        with_topology = [each.topology for each in records if each.topology is not None]
        newest = with_topology[-1] if with_topology else None
        if last.topology is None and newest is not None:
            last = msgspec.structs.replace(last, topology=newest)
        return cls(
            title=(newest.name if newest else "") or last.name or title,
            run=(newest.run if newest else "") or last.run_id or run,
            state=state,
            last=last,
            counted_seconds=before.seconds if last.counts_of_batch_before else last.seconds,
            series=_series(thinned(records, MOST_POINTS)),
            capacity=_capacity([each.components for each in with_topology[-CAPACITY_POINTS:]]),
            errors={
                component.name: component.last_error
                for topology in with_topology
                for component in topology.components
                if component.last_error is not None
            },
            runs=runs or {},
        )

    def to_json(self) -> bytes:
        """JSON without the special characters of HTML, so that it fits into a script element."""
        text = utf8_json(self)
        for character, escape in _ESCAPES:
            text = text.replace(character, escape)
        return text


# JSON has them only in strings.
_ESCAPES = tuple((character.encode(), f"\\u{ord(character):04x}".encode()) for character in "<>&\u2028\u2029")


def thinned(records: Sequence[PystormProgress], most: int) -> Sequence[PystormProgress]:
    """At most ``most`` records: the longest one of each group of neighbours, and always the last."""
    if len(records) <= most:
        return records
    step = -(-(len(records) - 1) // (most - 1))
    kept = [max(records[i : i + step], key=lambda each: each.seconds) for i in range(0, len(records) - 1, step)]
    return [*kept[: most - 1], records[-1]]


def _series(records: Sequence[PystormProgress]) -> Series:
    return Series(
        at=_times(records),
        batch=tuple(each.batch_id for each in records),
        backlog=tuple(each.backlog if each.admitted and each.door == "source" else None for each in records),
        **{name: tuple(getattr(each, name) for each in records) for name in _SAME},
    )


_SAME = tuple(
    name for name in Series.__struct_fields__ if name in PystormProgress.__struct_fields__ and name != "backlog"
)


def _times(records: Sequence[PystormProgress]) -> tuple[float, ...]:
    """When each began; always increasing, because a chart's axis needs that."""
    times: list[float] = []
    for record in records:
        before = times[-1] if times else 0.0
        times.append(max(_seconds_of(record.timestamp), before + 0.001))
    return tuple(times)


def _seconds_of(timestamp: str) -> float:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0


def _capacity(topologies: Sequence[Sequence[Any]]) -> dict[str, tuple[float | None, ...]]:
    shares = [{component.name: round(component.capacity, 3) for component in components} for components in topologies]
    return {name: tuple(each.get(name) for each in shares) for name in (shares[-1] if shares else {})}
