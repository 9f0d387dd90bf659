"""Permits for the spouts on the driver: ``snapshot``, ``latest``, ``commit``, and pages that the driver reads."""

from collections.abc import Callable

from pystorm_source.channel.leases.task_lessor import LeasePlace, runner_at
from pystorm_source.channel.reports.endpoint import LOOPBACK, ReportEndpoint
from pystorm_source.clock import SystemClock
from pystorm_source.errors import OptionError, given
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.options import EngineOptions


class DriverPermits:
    """What spouts on the driver have as their limits. ``run``: of the query; ``endpoint``: returns where this process
    gives permits, which it asks itself, None if it gives none."""

    def __init__(self, options: EngineOptions, run: str, endpoint: Callable[[], ReportEndpoint | None]):
        self._options = options
        self._run = run
        self._endpoint = endpoint
        self._limits = WorkerLimits(options, SystemClock(), {})

    def permits(self, name: str) -> Permits:
        """As ``WorkerLimits.permits``. Raises WorldError if this process does not listen, OptionError if permits are
        divided among tasks."""
        options, runner = self._options, None
        if name in options.limits and not options.rate_limit_redis:
            if options.rate_limit_tasks is not None:
                raise OptionError(
                    f"limit({name!r}): topology.rate.limit.tasks divides permits among tasks, which leaves none to a "
                    "spout's calls on the driver, such as snapshot(): leave the option out, or let a Redis give "
                    f"permits (topology.rate.limit.redis). Given: topology.rate.limit.tasks="
                    f"{given(options.rate_limit_tasks)}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )
            endpoint = self._endpoint()
            runner = runner_at(endpoint, None if endpoint is None else endpoint.runner(LOOPBACK))
        if name in options.limits:
            self._limits.lease_at(LeasePlace(self._run, runner))
        return self._limits.permits(name)
