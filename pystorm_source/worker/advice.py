"""Hints for the author of a component after a micro-batch, logged once per component and worker."""

import logging
from collections.abc import Iterable

from cython_core.executors.async_executor import AsyncExecutor
from cython_core.executors.bolt_executor import BoltExecutor
from cython_core.executors.executor import Executor
from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.api.spout import Spout
from pystorm_source.plan.plan import Plan

logger = logging.getLogger("pystorm.worker")

LONG_NANOS = 50_000_000
"""Time of the thread for a call of an async bolt. Less: bolts that parse an answer are named. More: a bolt that blocks
makes twenty requests a second where hundreds were possible, and the log does not say why."""
FEW_CALLS = 10
"""Least number of calls, half of them that long. Fewer: the first ones, which import and connect, decide."""


class Advice:
    """Remembers what was logged, but no executor: it may outlive the worker in a thread's frame."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def once(self, executor: Executor, what: str, text: str) -> None:
        """Logs ``text`` unless ``what`` was logged for this component before."""
        if (executor.component, what) not in self._said:
            self._said.add((executor.component, what))
            logger.warning("component %r, task %d: %s", executor.component, executor.task, text)

    def after(self, plan: Plan, executors: Iterable[Executor]) -> None:
        """Checks the counts of a micro-batch that has ended."""
        for executor in executors:
            if executor.returned:
                self.once(executor, "returned rows", executor.returned)
            if isinstance(executor, AsyncExecutor):
                self._of_async(executor)
            if isinstance(executor, BoltExecutor):
                self._of_bolt(executor)
            elif isinstance(executor, SpoutExecutor) and not plan.component(executor.component).is_partitioned:
                self._of_spout(executor)

    def _of_async(self, bolt: AsyncExecutor) -> None:
        times = bolt.times.latency
        if times.count >= FEW_CALLS and (nanos := times.quantile(0.5)) >= LONG_NANOS:
            self.once(
                bolt,
                "blocks",
                f"a call of process() holds up the event loop for {nanos / 1e6:.0f} ms (median), and no other request "
                "goes on meanwhile. If it blocks, such as by time.sleep or requests, use an async client or "
                "`await asyncio.to_thread(...)`; if it computes, write a Bolt",
            )

    def _of_bolt(self, bolt: BoltExecutor) -> None:
        if bolt.untracked_fails:
            self.once(
                bolt,
                "untracked fail",
                "failed a tuple that no spout can replay: it, or its anchor, was emitted without tup_id, without "
                "anchors, or at a tick",
            )

    def _of_spout(self, spout: SpoutExecutor) -> None:
        if spout.unsettled:
            self.once(
                spout,
                "unsettled",
                f"has {spout.unsettled} tuples that were neither acked nor failed when the micro-batch ended: a bolt "
                "with auto_ack = False keeps them, or has forgotten to ack",
            )
        cls = type(spout.instance)
        overridden = cls.ack is not Spout.ack or cls.fail is not Spout.fail
        if overridden and spout.emits and not spout.rooted:
            self.once(spout, "no ids", "defines ack or fail, which are never called: give emit a tup_id")
