"""Where the workers of a Spark task get their permits."""

from collections import OrderedDict

from pyspark import TaskContext

from pystorm_source.channel.client import client
from pystorm_source.channel.leases.redis_lessor import redis_lessor
from pystorm_source.channel.reports.endpoint import ReportEndpoint
from pystorm_source.clock import SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.limits.local_lessor import LocalLessor
from pystorm_source.limits.permits import Lessor
from pystorm_source.limits.worker_limits import breaker_of, shares
from pystorm_source.options import EngineOptions
from pystorm_source.worker.worker import Worker

_MOST_SHARES = 8  # Of so many queries; as idle workers.

_shares: OrderedDict[tuple[str, object, int], LocalLessor] = OrderedDict()


def lease(worker: Worker, run: str, endpoint: ReportEndpoint | None) -> None:
    """The worker, if it has limits, gets permits in this run of a query: from a Redis, a fixed share of its own, or
    from the process that ``endpoint`` leads to.

    Raises WorldError if there is none, OptionError if the package redis is missing here.
    """
    options = worker.plan.options
    if not worker.limits:
        return
    if options.rate_limit_redis:
        worker.limits.lease_from(redis_lessor(options))
    elif options.rate_limit_tasks is not None:
        worker.limits.lease_from(_share(options, run, options.rate_limit_tasks))
    else:
        worker.limits.lease_from(_client(endpoint))


def _share(options: EngineOptions, run: str, tasks: int) -> Lessor:
    """One of this process, whose tasks run one after the other."""
    key = (run, options.rate_limit if isinstance(options.rate_limit, str) else repr(options.rate_limit), tasks)
    found = _shares.pop(key, None)
    if found is None:
        limits = shares(options.limits, tasks)
        found = LocalLessor(limits, breaker_of(options), SystemClock(), fresh=False)
    _shares[key] = found
    while len(_shares) > _MOST_SHARES:
        _shares.popitem(last=False)
    return found


def _client(endpoint: ReportEndpoint | None) -> Lessor:
    runner = endpoint.runner_of(TaskContext.get()) if endpoint is not None else None
    if runner is None:
        raise WorldError(
            "the process on the driver that gives permits of rate limits does not listen, or its address is unknown: "
            "set feedback.host and feedback.port to an address that is free and that tasks can reach, let a Redis give "
            "them (topology.rate.limit.redis), or give each task a fixed share (topology.rate.limit.tasks). Given: "
            f"{endpoint!r}",
            code="PYSTORM_PERMITS_UNREACHABLE",
        )
    return client(runner).permits
