"""Where the workers of a Spark task get their permits, and their child processes: each process asks for itself."""

import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from pyspark import TaskContext

from pystorm_source.channel.client import client
from pystorm_source.channel.leases.redis_lessor import redis_lessor
from pystorm_source.channel.reports.endpoint import ReportEndpoint, Runner
from pystorm_source.clock import SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.limits.local_lessor import LocalLessor
from pystorm_source.limits.permits import Lessor
from pystorm_source.limits.worker_limits import breaker_of, shares
from pystorm_source.options import EngineOptions
from pystorm_source.worker.worker import Worker

_MOST_SHARES = 8  # Queries whose shares are kept, as many as idle workers.

_shares: OrderedDict[tuple[object, ...], LocalLessor] = OrderedDict()
# A forked process gets its own part, and a thread of its parent may have held a lock of these.
os.register_at_fork(after_in_child=_shares.clear)


class LeasePlace(NamedTuple):
    """A ``PermitPlace``. ``run``: of the query. ``runner``: gives the permits; None if a Redis or a share does."""

    run: str
    runner: Runner | None

    def lessor(self, options: EngineOptions, parts: Mapping[str, int]) -> Lessor:
        """As ``PermitPlace``. Raises OptionError if the package redis is missing here."""
        if self.runner is not None:
            return client(self.runner).permits
        if options.rate_limit_redis:
            return redis_lessor(options)
        return _share(options, self.run, parts)


def lease(worker: Worker, run: str, endpoint: ReportEndpoint | None) -> None:
    """Gives a worker with limits, and its child processes, a source of permits for this run of a query: a Redis, a
    fixed share, or the process at ``endpoint``.

    Raises WorldError without such a process, OptionError if the package redis is missing here.
    """
    options = worker.plan.options
    if not worker.limits:
        return
    is_asked = not options.rate_limit_redis and options.rate_limit_tasks is None
    worker.lease_from(LeasePlace(run, _runner(endpoint) if is_asked else None))


def _share(options: EngineOptions, run: str, parts: Mapping[str, int]) -> Lessor:
    """A share of this process, whose tasks run one after the other, or belong to one worker."""
    rates = options.rate_limit if isinstance(options.rate_limit, str) else repr(options.rate_limit)
    tasks = options.rate_limit_tasks or 1
    key = (run, rates, tasks, tuple(parts.items()))
    found = _shares.pop(key, None)
    if found is None:
        found = LocalLessor(shares(options.limits, parts, tasks), breaker_of(options), SystemClock(), fresh=False)
    _shares[key] = found
    while len(_shares) > _MOST_SHARES:
        _shares.popitem(last=False)
    return found


def _runner(endpoint: ReportEndpoint | None) -> Runner:
    return runner_at(endpoint, None if endpoint is None else endpoint.runner_of(TaskContext.get()))


def runner_at(endpoint: ReportEndpoint | None, runner: Runner | None) -> Runner:
    """``runner``, which is at ``endpoint``. Raises WorldError if there is none."""
    if runner is None:
        raise WorldError(
            "the driver does not listen for requests of permits, or its address is unknown: set feedback.host and "
            "feedback.port to a free address that tasks can reach, or set topology.rate.limit.redis or "
            f"topology.rate.limit.tasks. Given: {endpoint!r}",
            code="PYSTORM_PERMITS_UNREACHABLE",
        )
    return runner
