"""The limits of one process of a task."""

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.plan.permit_parts import permit_parts
from pystorm_source.plan.plan import Plan


def limits_of(plan: Plan, clock: Clock, component: str = "") -> WorkerLimits:
    """The limits of a worker, or of a child process of a component. With a clock other than the machine's there is one
    process, which needs no parts."""
    parts = permit_parts(plan, component) if isinstance(clock, SystemClock) else None
    return WorkerLimits(plan.options, clock, parts)
