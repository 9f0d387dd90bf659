"""Permits for the spouts on the driver: ``snapshot``, ``latest``, ``commit``, and pages that the driver reads."""

from collections.abc import Callable

from pystorm_source.channel.leases.task_lessor import LeasePlace, runner_at
from pystorm_source.channel.reports.endpoint import LOOPBACK, ReportEndpoint, Runner
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
        if name in self._options.limits:
            self._limits.lease_at(LeasePlace(self._run, self._runner(name)))
        return self._limits.permits(name)

    def _runner(self, name: str) -> Runner | None:
        """This process as its tasks know it; None if a Redis gives permits."""
        if self._options.rate_limit_redis:
            return None
        tasks = self._options.rate_limit_tasks
        if tasks is not None:
            raise OptionError(
                f"limit({name!r}): topology.rate.limit.tasks divides permits among tasks, which leaves none to a "
                "spout's calls on the driver, such as snapshot(): leave the option out, or let a Redis give permits "
                f"(topology.rate.limit.redis). Given: topology.rate.limit.tasks={given(tasks)}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        endpoint = self._endpoint()
        return runner_at(endpoint, None if endpoint is None else endpoint.runner(LOOPBACK))
