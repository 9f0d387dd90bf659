"""The limits of one worker, by name."""

from collections.abc import Iterable, Mapping
from functools import partial

from pystorm_source.clock import Clock
from pystorm_source.errors import ArgumentError, given
from pystorm_source.limits.breaker import CircuitBreaker
from pystorm_source.limits.local_lessor import LocalLessor
from pystorm_source.limits.permits import Lessor, Permits
from pystorm_source.options import EngineOptions
from pystorm_source.options.rate_limit import RateLimit, remedy_of_unknown


class WorkerLimits:
    """Those of ``topology.rate.limit``. Until ``lease_from`` the worker has each for itself alone."""

    def __init__(self, options: EngineOptions, clock: Clock):
        limits = options.limits
        breaker = breaker_of(options)
        self._lessor: Lessor = LocalLessor(limits.values(), breaker, clock)
        self._permits = {name: Permits(limit, clock, self._lessor) for name, limit in limits.items()}

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def __bool__(self) -> bool:
        return bool(self._permits)

    def lease_from(self, lessor: Lessor) -> None:
        """From now on permits come from there."""
        self._lessor = lessor
        for permits in self._permits.values():
            permits.lease_from(lessor)

    def lease_with(self, first: "WorkerLimits") -> None:
        """From now on permits come from the lessor of another worker, which does not run beside this one."""
        self.lease_from(first._lessor)

    def permits(self, name: str) -> Permits:
        """Those of a limit. Raises ArgumentError if there is none of that name."""
        found = self._permits.get(name)
        if found is None:
            raise ArgumentError(
                f"limit({name!r}): topology.rate.limit names {_named(self._permits)}"
                f"{remedy_of_unknown(str(name), self._permits)} Given: {given(name)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return found


def breaker_of(options: EngineOptions) -> "partial[CircuitBreaker]":
    """Makes a breaker as the options say."""
    return partial(CircuitBreaker, options.breaker_percent / 100, options.breaker_pause_secs)


def shares(limits: Mapping[str, RateLimit], tasks: int) -> Iterable[RateLimit]:
    """What one of so many tasks may do of each."""
    return [limit.shared(tasks) for limit in limits.values()]


def _named(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "no limit"
