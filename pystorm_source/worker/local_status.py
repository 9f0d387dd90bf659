"""What a local run is doing, in a few words: for a display in another thread, while components are called.

    a call that lasts, of a component or of a spout on the driver ──► stalled by it
    no tuple has moved for a second ──► waiting: for input, for requests, for acks
    a queue is full, or one component takes all the time ──► reading, and the component that the others wait for

Workers keep these counts anyway, so a look costs the components nothing.

Threading law: one thread looks. It reads the run's counts while another thread changes them.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from cython_core.executors.spout_executor import SpoutExecutor
from pystorm_source.worker.local_run import LocalRun
from pystorm_source.worker.task_times import permit_text
from pystorm_source.worker.unread import Asked
from pystorm_source.worker.watchdog import CallTimes, LongCall, in_component

State = Literal["starting", "reading", "waiting", "stalled"]

LONG_CALL_SECONDS = 1.0
"""A call that lasts this long is what the others wait for. Less: healthy calls are named. More: it is named later."""
SLOW_CALL_SECONDS = 0.01
"""A component whose calls take this long on average stalls the run if it is never idle. Less: a run at full speed looks
stalled, because some component is always the slowest."""
WINDOW_SECONDS = 1.0
"""Time between two readings that are compared. Less: a component between two of its calls looks idle. More: the status
is out of date."""
MOST = 0.8
"""Share of the time that counts as all of it."""


class Status(NamedTuple):
    """``text``: the state, and what the run waits for. ``blamed``: that component, or empty."""

    state: State
    text: str
    blamed: str = ""


class LocalStatus:
    """The status of ``local``, look by look."""

    def __init__(self, local: LocalRun):
        self._local = local
        self._calls = CallTimes(LONG_CALL_SECONDS)
        self._asked: tuple[Asked | None, float] = (None, 0.0)
        self._before: tuple[float, Mapping[str, Any]] | None = None
        self._last = Status("starting", "starting")

    def look(self, report: Mapping[str, Any], now: float) -> Status:
        """The status now. ``report``: the run's counts; ``now``: a reading of ``clock.monotonic``."""
        components = report.get("components", {})
        if self._before is None or not self._before[1]:
            self._before = (now, components)
            self._last = Status("reading", "reading") if components else Status("starting", "starting")
        elif now - self._before[0] >= WINDOW_SECONDS:
            (then, before), self._before = self._before, (now, components)
            self._last = self._since(before, components, now - then)
        return self._stuck_on_driver(now) or self._stuck_call(now) or self._last

    def _stuck_on_driver(self, now: float) -> Status | None:
        asked = self._local.unread.asked
        if asked is not self._asked[0]:
            self._asked = (asked, now)
        lasted = now - self._asked[1]
        if asked is None or lasted < LONG_CALL_SECONDS:
            return None
        return _stalled(asked.spout, f"{asked.method}(), on the driver, has not returned for {lasted:.0f} s")

    def _stuck_call(self, now: float) -> Status | None:
        worker = self._local.worker
        calls: list[LongCall] = [] if worker is None else self._calls.under_way(worker.calls(), now)
        longest = max(calls, key=lambda call: call.seconds, default=None)
        if longest is None or longest.seconds < LONG_CALL_SECONDS:
            return None
        executor, method, _ = in_component(longest.executors, longest.thread)
        if waits := permit_text(executor):
            return Status("waiting", f"{executor.component!r} {waits} for {longest.seconds:.0f} s", executor.component)
        called = f"{method}()" if method else "a call"
        return _stalled(executor.component, f"{called} has not returned for {longest.seconds:.0f} s")

    def _since(self, before: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> Status:
        """The status, from the counts of two readings."""
        moved = {name: _Moved.between(before.get(name, {}), counts) for name, counts in now.items()}
        if not any(each.tuples for each in moved.values()):
            return self._still(now)
        if limited := self._limited(moved, seconds):
            return limited
        # The last one: the ones before wait for it.
        full = [name for name, each in moved.items() if each.stalled >= MOST * seconds]
        slowest = max(moved, key=lambda name: moved[name].busy)
        if moved[slowest].busy < MOST * seconds and not full:
            return Status("reading", "reading")
        behind = self._local.unread.backlog > 0 or bool(full)
        if behind and moved[slowest].mean >= SLOW_CALL_SECONDS:
            return _stalled(slowest, f"a call takes {moved[slowest].mean * 1000:,.0f} ms{_queue(now[slowest])}")
        text = f"reading; the others wait for {slowest!r}" if full else "reading"
        return Status("reading", text, slowest if full else "")

    def _limited(self, moved: "Mapping[str, _Moved]", seconds: float) -> Status | None:
        """A component whose calls waited for permits nearly all of the time."""
        for name, each in moved.items():
            for limit, waited in each.permits.items():
                if waited >= MOST * seconds:
                    rate = self._local.plan.options.limits[limit].text
                    return Status("reading", f"reading; {name!r} waits for permits of {limit!r}, {rate}", name)
        return None

    def _still(self, now: Mapping[str, Any]) -> Status:
        """The status if nothing was emitted or executed."""
        for name, counts in now.items():
            if counts.get("pending_requests"):
                return Status("waiting", f"waiting for {_requests(counts)} of {name!r}", name)
            if away := counts.get("away"):
                text = f"waiting for the process of {name!r}, which has {_counted(away)}{_limited(counts)}"
                return Status("waiting", text, name)
        if asks := self._spout_without_end():
            text = f"waiting for {asks!r}: next_tuple() emits nothing and has not returned False, which ends its range"
            return Status("waiting", text, asks)
        if self._local.unread.backlog > 0:
            return Status("waiting", "waiting for acks, retries or time-outs")
        return Status("waiting", "waiting for input")

    def _spout_without_end(self) -> str:
        """A spout whose range has not ended although none of its tuples waits for a verdict."""
        worker = self._local.worker
        for executor in worker.executors if worker is not None and self._local.unread.backlog > 0 else ():
            if isinstance(executor, SpoutExecutor) and not (executor.exhausted or executor.unsettled):
                return executor.component
        return ""


class _Moved(NamedTuple):
    """What a component did between two readings. Seconds: ``busy``, in calls and around them; ``stalled``, with a full
    queue below it; ``mean``, of a call; ``permits``, waiting for a limit's permits, on average over all tasks."""

    tuples: int
    busy: float
    stalled: float
    mean: float
    permits: Mapping[str, float]

    @classmethod
    def between(cls, before: Mapping[str, Any], now: Mapping[str, Any]) -> "_Moved":
        def more(*path: str) -> float:
            old: Any = before
            new: Any = now
            for key in path:
                old, new = old.get(key, {}), new.get(key, {})
            return float(new or 0) - float(old or 0)

        calls = more("latency", "count")
        mean = more("latency", "total") / calls if calls > 0 else 0.0
        tuples = int(more("executed") + more("emitted"))
        tasks = max(1, len(now.get("tasks", {})))
        permits = {
            name: (more("permits", name, "wait_seconds") + more("permits", name, "pause_seconds")) / tasks
            for name in now.get("permits", {})
        }
        return cls(tuples, more("busy_seconds"), more("stall_seconds", "downstream_full"), mean, permits)


def _stalled(component: str, why: str) -> Status:
    return Status("stalled", f"stalled by {component!r}: {why}", component)


def _counted(tuples: int) -> str:
    return f"{tuples:,} tuple{'' if tuples == 1 else 's'}"


def _requests(counts: Mapping[str, Any]) -> str:
    return f"{counts['pending_requests']:,} requests{_limited(counts)}"


def _limited(counts: Mapping[str, Any]) -> str:
    waiting = [
        f", {each['waiting']:,} wait{'s' if each['waiting'] == 1 else ''} for a permit of {name!r}"
        for name, each in counts.get("permits", {}).items()
        if each["waiting"]
    ]
    return "".join(waiting)


def _queue(counts: Mapping[str, Any]) -> str:
    waiting = counts.get("queue_population", 0)
    return f", {waiting:,} tuples are in its queue" if waiting else ""
