"""Permits for operators: the process that called ``apply`` gives them as long as it lives.

Operators of one topology share their limits, even across queries, so that ``apply`` in each call of ``foreachBatch``
does not start over.

Threading law: any thread calls it.
"""

from functools import partial
from threading import Lock

from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.reports.endpoint import ListenAddress, ReportEndpoint
from pystorm_source.channel.reports.server import ReportServer, serve
from pystorm_source.clock import SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.options import EngineOptions
from pystorm_source.options.rate_limit import RateLimit
from pystorm_source.records.record import OutageProgress

_Key = tuple[str, tuple[tuple[str, RateLimit], ...], int, float, str, int]

_endpoints: dict[_Key, tuple[ReportServer, ReportEndpoint, LeaseServer]] = {}
_lock = Lock()


def endpoint_of(topology: str, options: EngineOptions, master: str, host: str = "", port: int = 0) -> ReportEndpoint:
    """Where the tasks of its operators get permits. ``master``: Spark's, which says whether they run on this machine;
    ``host``, ``port``: options feedback.host and feedback.port.

    Raises WorldError if this process cannot listen.
    """
    limits = tuple(sorted(options.limits.items()))
    key = (topology, limits, options.breaker_percent, options.breaker_pause_secs, host, port)
    with _lock:
        found = _endpoints.get(key)
        if found is None or not found[0].listens:
            found = _endpoints[key] = _started(options, ListenAddress.of(host, ["--master", master]), port)
        return found[1]


def outages_of(topology: str) -> tuple[OutageProgress, ...]:
    """The limits of its operators whose circuit breakers are open."""
    with _lock:
        servers = [leases for key, (_, _, leases) in _endpoints.items() if key[0] == topology]
    return tuple(outage for leases in servers for outage in leases.outages())


def _started(
    options: EngineOptions, place: ListenAddress, port: int
) -> tuple[ReportServer, ReportEndpoint, LeaseServer]:
    clock = SystemClock()
    leases = LeaseServer(options, clock)
    make = partial(ReportServer, clock=clock, leases=leases.answer, thread_name="pystorm-permits")
    try:
        return *serve(place, port, make), leases
    except OSError as error:
        raise WorldError(
            f"this process cannot listen, and gives no permits of rate limits ({error}): set feedback.host and "
            "feedback.port to an address that is free, let a Redis give them (topology.rate.limit.redis), or give "
            "each task a fixed share (topology.rate.limit.tasks). Given: "
            f"feedback.host={place.bind!r}, feedback.port={port!r}",
            code="PYSTORM_PERMITS_UNREACHABLE",
        ) from error
