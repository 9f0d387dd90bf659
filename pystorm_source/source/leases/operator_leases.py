"""Permits for operators: the process that called ``apply`` gives them, for as long as it lives.

Operators of one topology have their limits together, whichever query they are in: ``apply`` in each call of
``foreachBatch`` must not begin anew.

Threading law: any thread calls it.
"""

import secrets
from collections.abc import Mapping
from threading import Lock

from pystorm_source.clock import SystemClock
from pystorm_source.options import EngineOptions
from pystorm_source.options.rate_limit import RateLimit
from pystorm_source.source.leases.lease_server import LeaseServer
from pystorm_source.source.reports.endpoint import LOOPBACK, ReportEndpoint
from pystorm_source.source.reports.server import ReportServer

_TOKEN_BYTES = 32

_Key = tuple[str, tuple[tuple[str, RateLimit], ...], int, float]

_endpoints: dict[_Key, tuple[ReportServer, ReportEndpoint]] = {}
_lock = Lock()


def endpoint_of(topology: str, options: EngineOptions, master: str) -> ReportEndpoint:
    """Where the tasks of its operators get permits. ``master``: Spark's, which tells whether they run on this machine.

    Raises OSError if this process cannot listen.
    """
    key = (topology, _frozen(options.limits), options.breaker_percent, options.breaker_pause_secs)
    with _lock:
        found = _endpoints.get(key)
        if found is None or not found[0].listens:
            found = _endpoints[key] = _started(options, master)
        return found[1]


def _frozen(limits: Mapping[str, RateLimit]) -> tuple[tuple[str, RateLimit], ...]:
    return tuple(sorted(limits.items()))


def _started(options: EngineOptions, master: str) -> tuple[ReportServer, ReportEndpoint]:
    token, clock = secrets.token_bytes(_TOKEN_BYTES), SystemClock()
    host = LOOPBACK if master.startswith("local") else ""
    server = ReportServer(host, 0, token, clock=clock, leases=LeaseServer(options, clock).answer)
    server.start()
    return server, ReportEndpoint(host, server.address[1], token)
