"""The object that ``Component.limit`` returns: a call of a service within a rate limit."""

import asyncio
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cython_core.executors.async_executor import AsyncBase, pause_request, request_has_expired, resume_request
from cython_core.routing.failure_kinds import FailureKind
from pystorm_source.api.batch_call import call_of
from pystorm_source.caches.flight import leading
from pystorm_source.clock import SystemClock
from pystorm_source.errors import ArgumentError, given

if TYPE_CHECKING:
    from pystorm_source.limits.permit_waits import PermitWaits
    from pystorm_source.limits.permits import Permits, Waiter

_LOOK_SECONDS = 1.0
"""Seconds after which a thread that waits for a permit looks up. Longer: an interrupt is noticed late."""
_IN_ORDER = 0.001
"""How far apart sleepers wake that wake at once, as a share of the time between their times. More: the loop wakes for
each of them. 0: in any order, because asyncio's timers have none if they end at the same time."""
_LONGEST_ERROR = 200
_EXPIRED = "the call took longer than topology.async.request.timeout.secs"


class Limit:
    """Wraps one call of a service; made by ``Component.limit``: ``async with`` in an ``AsyncBolt``, ``with`` elsewhere.

    Entering waits for a permit. The way the block exits tells the circuit breaker whether the service is healthy: an
    exception says that it is not, unless it is ``RetryLater`` or ``Hopeless``, or ``topology.retry.on`` calls it
    ``never``, or ``AsyncBolt.is_overload`` says otherwise.

    Example:
        >>> from pystorm_source import Bolt, Topology
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import ManualClock, run_topology
        >>> class Ask(Bolt):
        ...     outputs = ["n long"]
        ...     def process(self, tup):
        ...         with self.limit("api"):
        ...             self.emit([tup.values.n])  # a call of the service
        >>> class Asks(Topology):
        ...     config = {"topology.rate.limit": {"api": "10/s"}}
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(21)])
        ...     ask = Ask.spec(inputs=[numbers])
        >>> clock = ManualClock()
        >>> len(run_topology(Asks, clock=clock).rows("ask")), round(clock.now)
        (21, 2)
    """

    def __init__(self, bolt: Any, permits: "Permits", number: int = 1):
        self._bolt = bolt
        self._permits = permits
        self._number = number
        self._waiters: list[Waiter] = []
        self._is_entered = False
        self._span: Any = None

    @property
    def name(self) -> str:
        """The limit's name in ``topology.rate.limit``."""
        return self._permits.limit.name

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Counts the time in the block as waiting; without an exception, a call begins at its end."""
        waits: PermitWaits = self._bolt._pystorm_permits.of(self._permits)
        waits.begin()
        is_made = False
        try:
            yield
            is_made = True
        finally:
            waits.end(is_made)

    def __enter__(self) -> None:
        if isinstance(self._bolt, AsyncBase):
            raise ArgumentError(
                f"a limit of an AsyncBolt is entered by async with, as with would hold up all its calls. Given: "
                f"with self.limit({self._permits.limit.name!r}) in {type(self._bolt).__name__}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        began = self._permits.clock.monotonic()
        with self._waiting(), self._taking():
            while self._wants_more():
                self._waiters.append(self._take())
        self._began(began)

    def _wants_more(self) -> bool:
        """Order: not after the permit of a probe, because there is no other one until the probe has ended."""
        return len(self._waiters) < self._number and not (self._waiters and self._waiters[-1].probe)

    @contextmanager
    def _taking(self) -> Iterator[None]:
        """If not all of its permits arrive, those that have arrived make no call. Raises ArgumentError if another call
        has entered the same object: nothing tells their permits apart."""
        if self._is_entered:
            raise ArgumentError(
                f"an object of {type(self._bolt).__name__}.limit is for one call at a time, and this one is entered by "
                f"another call: write self.limit({self.name!r}) in each with. Given: {given(self.name)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        self._is_entered = True
        try:
            yield
        except BaseException:
            self._is_entered = False
            for waiter in self._waiters:
                self._permits.ended(waiter, None)
            self._waiters.clear()
            raise

    def _take(self) -> "Waiter":
        """Blocking."""
        first = False
        while True:
            woken = threading.Event()
            waiter = self._permits.take(woken.set, first)
            try:
                while waiter.time is None and waiter.error is None:
                    self._wait(woken)
                if (left := self._seconds_left(waiter)) > 0:
                    clock = self._permits.clock
                    # The test kit's sleeps as the engine does, until something happens, which may be the time-out.
                    getattr(clock, "pause", clock.sleep)(left)
            except BaseException:
                self._permits.give_up(waiter)
                raise
            if self._permits.starts(waiter):
                return waiter
            first = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended(error)

    async def __aenter__(self) -> None:
        began = self._permits.clock.monotonic()
        with self._waiting(), self._taking():
            while self._wants_more():
                self._waiters.append(await self._take_async())
        self._began(began)

    async def _take_async(self) -> "Waiter":
        loop = asyncio.get_running_loop()
        batch, flight = call_of(self._bolt), leading.get()
        request = None
        is_paused = first = False
        try:
            while True:
                wake = _Wake(loop)
                waiter = self._permits.take(wake, first)
                try:
                    if not is_paused and not self._is_at_once(waiter):
                        is_paused = True
                        request = pause_request(self._bolt)
                        if batch is not None:
                            batch.pause()
                        if flight is not None:
                            flight.pause()
                    while waiter.time is None and waiter.error is None:
                        await wake.wait(self._permits.seconds_to_look())
                        self._permits.look()
                    if (left := self._seconds_left(waiter)) > 0:
                        await _sleep(left, self._permits.together)
                except BaseException:
                    self._permits.give_up(waiter)
                    raise
                if self._permits.starts(waiter):
                    return waiter
                first = True
        finally:
            if request is not None:
                resume_request(request)
            if batch is not None and is_paused:
                batch.resume()
            if flight is not None and is_paused:
                flight.resume()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended(error)

    def _wait(self, woken: threading.Event) -> None:
        """Waits until it has a permit, or may ask again, or for a while."""
        left = self._permits.seconds_to_look()
        if woken.wait(_LOOK_SECONDS if left is None else min(left, _LOOK_SECONDS)) or left is None:
            return
        clock = self._permits.clock
        if not isinstance(clock, SystemClock):
            getattr(clock, "pause", clock.sleep)(left)
        self._permits.look()

    def _is_at_once(self, waiter: "Waiter") -> bool:
        return waiter.time is not None and self._seconds_left(waiter) <= 0

    def _seconds_left(self, waiter: "Waiter") -> float:
        """Seconds until the time of its permit. Raises its error if it gets no permit."""
        if waiter.error is not None:
            raise waiter.error
        assert waiter.time is not None
        return waiter.time - self._permits.clock.monotonic()

    def _began(self, asked: float) -> None:
        seconds = self._permits.clock.monotonic() - asked
        self._bolt.report_metric(f"limit.{self.name}.wait.secs", seconds)
        if (spans := self._bolt._pystorm_spans) is not None:
            self._span = spans.begin(self.name, {"pystorm.limit": self.name, "pystorm.waited_ms": seconds * 1000})

    def _ended(self, error: BaseException | None) -> None:
        waiters, self._waiters = self._waiters, []
        self._is_entered = False
        if waiters:
            has_expired = isinstance(error, asyncio.CancelledError) and self._has_expired()
            verdict, text = self._verdict(error, has_expired), _EXPIRED if has_expired else _text(error)
            for waiter in waiters:
                self._permits.ended(waiter, verdict, text)
        span, self._span = self._span, None
        if span is not None:
            span.end(error)  # order: last, because an exporter may take its time

    def _has_expired(self) -> bool:
        batch = call_of(self._bolt)
        return request_has_expired(self._bolt) if batch is None else batch.has_expired

    def _verdict(self, error: BaseException | None, has_expired: bool) -> bool | None:
        """Whether the call says that the service works; None: it says nothing. ``has_expired``: it was cancelled
        because it took too long."""
        if error is None or isinstance(error, FailureKind):
            return True
        if isinstance(error, asyncio.CancelledError):
            return False if has_expired else None
        if not isinstance(error, Exception):
            return None
        rules = self._bolt._pystorm_rules
        if rules is not None and rules.verdict(error) == "never":
            return True
        asked = getattr(self._bolt, "is_overload", None)
        return not (asked is None or asked(error))


class _Wake:
    """Any thread calls it to end ``wait`` in the loop's thread, which is the one that makes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._thread = threading.get_ident()
        self._woken: asyncio.Future[None] | None = None

    def __call__(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing waits any more
            if threading.get_ident() == self._thread:
                self._set()  # without a byte through the loop's pipe, which would cost two system calls and a round
            else:
                self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    async def wait(self, seconds: float | None) -> None:
        """Until it is called, for at most ``seconds``; None: without a limit."""
        self._woken = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, self._set)
        try:
            await self._woken
        finally:
            if timer is not None:
                timer.cancel()


async def _sleep(seconds: float, together: float) -> None:
    """For at least ``seconds``, and at most ``together`` longer, so that several sleepers of a loop wake at once: at a
    multiple of ``together``, if that is not 0. Order: never by a ``_Wake``, which may be called late."""
    loop = asyncio.get_running_loop()
    when = loop.time() + seconds
    if together:
        moment = math.ceil(when / together) * together
        when = moment + (when - moment + together) * _IN_ORDER
    over = loop.create_future()
    timer = loop.call_at(when, _end, over)
    try:
        await over
    finally:
        timer.cancel()


def _end(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)


def _text(error: BaseException | None) -> str:
    if error is None:
        return ""
    name, text = type(error).__name__, str(error)
    return f"{name}: {given(text)}"[:_LONGEST_ERROR] if text else name
