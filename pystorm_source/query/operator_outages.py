"""Services of operators of this process that fail now: the process that called ``apply`` gives their tasks permits."""

from collections.abc import Callable, Sequence

from pystorm_source.records.record import OutageProgress

Outages = Callable[[], Sequence[OutageProgress]]

_operators: dict[str, Outages] = {}


def note_outages(topology: str, outages: Outages) -> None:
    """Operators of that topology get permits here. ``outages``: the limits whose circuit breakers are open."""
    _operators[topology] = outages


def outages_of(topology: str) -> tuple[OutageProgress, ...]:
    """The outages of one topology's operators."""
    outages = _operators.get(topology)
    return tuple(outages()) if outages is not None else ()


def outages_here() -> tuple[OutageProgress, ...]:
    """The outages of all operators, whichever query they are in."""
    return tuple(outage for topology in list(_operators) for outage in outages_of(topology))
