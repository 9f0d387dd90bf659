"""What a spout has of the engine on the driver, where no worker runs it."""

from typing import Any, Protocol

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.limits.permit_waits import TaskWaits
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.plan.plan import ComponentPlan, Plan
from pystorm_source.worker.failure_rules import FailureRules


class LimitsByName(Protocol):
    """What ``Component.limit`` asks."""

    def permits(self, name: str) -> Permits:
        """As ``WorkerLimits``."""


def own_limits(plan: Plan, clock: Clock | None) -> LimitsByName:
    """The limits of a plan, which this process has to itself."""
    return WorkerLimits(plan.options, clock or SystemClock())


def give_limits(spout: Any, component: ComponentPlan, limits: LimitsByName) -> None:
    """Lets the spout take permits, and judge what its calls raise, as in a task."""
    spout._pystorm_limits, spout._pystorm_permits = limits, TaskWaits()
    if component.options.retry_on:
        spout._pystorm_rules = FailureRules(component.options.retry_rules)
