"""A task of a component in a process of its own: its worker, wired to its link."""

import pyarrow as pa

from cython_core.links.link_end import LinkEnd
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.processes.child_plan import child_plan, sources_of
from pystorm_source.worker.processes.child_run import ChildRun
from pystorm_source.worker.processes.link_bolt import LinkBolt
from pystorm_source.worker.processes.link_spout import Inbox, LinkSpout, Outbox
from pystorm_source.worker.worker import Worker


class ChildWorker:
    """``plan``: of the whole topology. ``end``: the child's end of the task's link. Raises TupleFailed if a component's
    constructor does."""

    def __init__(self, plan: Plan, component: str, task: int, end: LinkEnd, clock: Clock | None = None):
        self._clock = clock or SystemClock()
        self._end = end
        sources = {f"{name}.{stream}": (name, stream) for name, stream in sources_of(plan, component)}
        self._inbox, self.outbox = Inbox(end, list(sources.values())), Outbox(end)
        self.worker = Worker(child_plan(plan, component, task), OutputPlan(pa.schema([]), ()), self._clock)
        for executor in self.worker.executors:
            if isinstance(executor.instance, LinkSpout):
                executor.instance._pystorm_link(sources[executor.component], self._inbox, self.outbox)
            elif isinstance(executor.instance, LinkBolt):
                executor.instance._pystorm_link(self.outbox)

    def run(self) -> None:
        """All of the child's work, until the parent says END."""
        self.worker.start()
        scheduler = self.worker._scheduler
        ChildRun(scheduler, self.worker.executors, self._clock, self._end, self._inbox, self.outbox).run()
        self.worker.stop()
