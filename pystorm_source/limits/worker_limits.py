"""The limits of one process of a Spark task, by name: of its worker, or of all tasks in one child process."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Protocol

from pystorm_source.clock import Clock
from pystorm_source.errors import ArgumentError, TopologyError, given
from pystorm_source.limits.breaker import CircuitBreaker
from pystorm_source.limits.local_lessor import LocalLessor
from pystorm_source.limits.permits import Lessor, Permits
from pystorm_source.options import EngineOptions
from pystorm_source.options.rate_limit import RateLimit, remedy_of_unknown


class PermitPlace(Protocol):
    """Where permits come from, for a worker's child processes. Picklable; equal ones are the same place."""

    def lessor(self, options: EngineOptions, parts: Mapping[str, int]) -> Lessor:
        """The ``Lessor`` of this process at that place. ``parts``: as in ``WorkerLimits``."""


class WorkerLimits:
    """The limits of ``topology.rate.limit``. Until ``lease_from``, this process has each of them to itself.

    ``parts``: limit → how many processes divide the task's fixed share, this one included; a limit whose permits this
    process takes only from elsewhere is left out. None: this process has all of each share.
    """

    def __init__(self, options: EngineOptions, clock: Clock, parts: Mapping[str, int] | None = None):
        limits = options.limits
        self._options = options
        self._parts = dict.fromkeys(limits, 1) if parts is None else parts
        self._lessor: Lessor = LocalLessor(shares(limits, self._parts), breaker_of(options), clock)
        self._permits = {name: Permits(limit, clock, self._lessor) for name, limit in limits.items()}

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def __bool__(self) -> bool:
        return bool(self._permits)

    def lease_at(self, place: PermitPlace) -> None:
        """From now on, permits come from this place. Raises what ``place.lessor`` raises."""
        self.lease_from(place.lessor(self._options, self._parts))

    def lease_from(self, lessor: Lessor) -> None:
        """From now on, permits come from ``lessor``."""
        self._lessor = lessor
        for permits in self._permits.values():
            permits.lease_from(lessor)

    def lease_with(self, first: "WorkerLimits") -> None:
        """From now on, permits come from where another worker has them, if it has the same parts. It must not run
        beside this one."""
        if first._parts == self._parts:
            self.lease_from(first._lessor)

    def leave(self, seconds: float) -> None:
        """Blocks for at most ``seconds``: before this process ends, it reports how its calls have ended."""
        self._lessor.leave(seconds)

    def permits(self, name: str) -> Permits:
        """The permits of a limit. Raises ArgumentError for an unknown name, TopologyError if this process has no part
        of the limit."""
        found = self._permits.get(name)
        if found is None:
            raise ArgumentError(
                f"limit({name!r}): topology.rate.limit names {_named(self._permits)}"
                f"{remedy_of_unknown(str(name), self._permits)} Given: {given(name)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        if isinstance(self._lessor, LocalLessor) and name not in self._parts:
            raise TopologyError(
                f"limit({name!r}): a Spark task divides its share of a limit among the processes of the bolts that "
                "name it, and this bolt leaves that to a function outside of its class: call self.limit in a method "
                f"of the class, or give its spec limits=[{name!r}]. Given: {given(name)}",
                code="PYSTORM_INVALID_TOPOLOGY",
            )
        return found


def breaker_of(options: EngineOptions) -> "partial[CircuitBreaker]":
    """Makes a breaker as the options say."""
    return partial(CircuitBreaker, options.breaker_percent / 100, options.breaker_pause_secs)


def shares(limits: Mapping[str, RateLimit], parts: Mapping[str, int], tasks: int = 1) -> Iterable[RateLimit]:
    """The share of each limit for one process of one of so many tasks. ``parts``: as in ``WorkerLimits``."""
    return [limits[name].shared(tasks * part) for name, part in parts.items()]


def _named(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "no limit"
