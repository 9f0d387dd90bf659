"""A task of a component in a process of its own: its worker, wired to its link."""

import pyarrow as pa

from cython_core.executors.executor import ComponentFailed
from cython_core.links.link_end import LinkEnd
from cython_core.tuples.tuple import Tuple
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import TupleFailed
from pystorm_source.plan.plan import Plan
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.processes.carried_error import pack_error
from pystorm_source.worker.processes.child_plan import child_plan, sources_of
from pystorm_source.worker.processes.child_run import ChildRun
from pystorm_source.worker.processes.frames import Kind, pack
from pystorm_source.worker.processes.link_bolt import LinkBolt
from pystorm_source.worker.processes.link_spout import Inbox, LinkSpout, Outbox
from pystorm_source.worker.worker import Worker

# Longer: a parent that reads no more is waited for. Shorter: a busy one learns the exit status alone.
LAST_WORDS_SECONDS = 5.0


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
        """All of the child's work, until the parent says END, or the component has failed: that goes up as FAILED, and
        ends the process with status 1."""
        try:
            self._run()
        except ComponentFailed as failure:  # in a turn
            self._report(failure.tuple, failure.method, failure.__cause__)
        except TupleFailed as failed:  # in initialize
            self._report(None, "initialize", failed.__cause__)

    def _report(self, tup: Tuple | None, method: str, error: BaseException | None) -> None:
        """To the parent, which ends the run. What its tasks have done and not published is lost with that."""
        # The exception has failed the tuple, and its tree has no number any more: its source and values name it.
        whose = None if tup is None else (tup.component, tup.stream, tuple(tup.values))
        if self.outbox.send():
            packed = None if error is None else pack_error(error)
            self._end.write(Kind.FAILED, pack((whose, method, packed)))
            deadline = self._clock.monotonic() + LAST_WORDS_SECONDS
            while not self._end.flush() and self._clock.monotonic() < deadline:
                self._end.ring()
                self._clock.sleep(0.001)
        self._end.ring()
        raise SystemExit(1)

    def _run(self) -> None:
        self.worker.start()
        scheduler = self.worker._scheduler
        ChildRun(scheduler, self.worker.executors, self._clock, self._end, self._inbox, self.outbox).run()
        self.worker.stop()
