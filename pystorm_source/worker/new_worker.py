"""A worker with its child processes. Order: the children are forked before the worker has anything."""

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.processes.children import Children
from pystorm_source.worker.processes.process_limits import limits_of
from pystorm_source.worker.worker import Worker


def new_worker(plan: Plan, output: OutputPlan, clock: Clock | None = None, seed: int | None = None) -> Worker:
    """Builds a ``Worker`` whose components with ``processes=`` run in children.

    Raises TupleFailed if a component's constructor does, TopologyError if this place does not allow children.
    """
    clock = clock or SystemClock()
    if not any(component.processes for component in plan.components):
        return Worker(plan, output, clock, seed)
    limits = limits_of(plan, clock)
    children = Children(plan, clock, limits)
    try:
        return Worker(plan, output, clock, seed, children, limits)
    except BaseException:
        children.close()
        raise
