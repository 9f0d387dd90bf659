"""The caches that ``Bolt.cache`` returns: a service's answers, kept for a while."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cython_core.arrow.row_error import coded
from cython_core.executors.async_executor import AsyncRequest, pause, request_variable, resume_request
from pystorm_source.api.batch_call import call_of
from pystorm_source.caches.flight import Flight, leading
from pystorm_source.caches.lookups import Lookups
from pystorm_source.caches.shared_cache import ABSENT, SharedCache
from pystorm_source.errors import ArgumentTypeError, given

_LOOK_SECONDS = 1.0
"""Seconds after which a thread that waits for another one's call looks up. Longer: an interrupt is noticed late."""


class _Cache:
    """``cache``: the process's; ``lookups``: the task's."""

    def __init__(self, bolt: Any, cache: SharedCache, lookups: Lookups):
        self._bolt = bolt
        self._cache = cache
        self._lookups = lookups

    def __reduce__(self) -> tuple[object, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def __repr__(self) -> str:
        return repr(self._cache.settings)

    @contextmanager
    def _leads(self, flight: Flight) -> Iterator[None]:
        """Makes the block the call for a key: however it ends, its waiters go on."""
        token = leading.set(flight)
        try:
            yield
        except BaseException as error:
            self._cache.end(flight, error=error if isinstance(error, Exception) else None)
            raise
        finally:
            leading.reset(token)


class Cache(_Cache):
    """A cache of a bolt that is no ``AsyncBolt``, made by ``Bolt.cache``.

    Example:
        >>> from pystorm_source import Bolt, Topology
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Names(Bolt):
        ...     outputs = ["name string"]
        ...     def initialize(self, conf, context):
        ...         self.names = self.cache("names", ttl="10m")
        ...     def ask(self, number):
        ...         return f"customer {number}"  # a call of the service
        ...     def process(self, tup):
        ...         self.emit([self.names.get(tup.values.n, self.ask)])
        >>> class Named(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [1]])
        ...     named = Names.spec(inputs=[numbers])
        >>> run_topology(Named).rows("named")
        [('customer 1',), ('customer 1',)]
    """

    def get(self, key: Any, fetch: Callable[[Any], Any]) -> Any:
        """Returns the value of a key; calls ``fetch`` if the cache has no fresh one. Blocks while this thread, or
        another one for the same key, makes the call.

        Args:
            key (Any): hashable; with ``redis`` a str, number, bool or None, or a tuple of them.
            fetch (Callable): takes the key and returns its value, or None if there is no value.

        Returns:
            Any: the value, which all callers share: do not change it. None: there is no value.

        Raises:
            ArgumentTypeError: a key or value that cannot be kept, or a ``fetch`` that is async.
            Exception: what ``fetch`` raises; it is not kept.
        """
        found = self._cache.find(key, self._lookups)
        while found is ABSENT:
            found, flight, leads = self._cache.ask(key, self._lookups)
            if flight is not None:
                found = self._call(flight, fetch) if leads else self._wait(flight)
        return found

    def _call(self, flight: Flight, fetch: Callable[[Any], Any]) -> Any:
        cache = self._cache
        with self._leads(flight):
            if cache.far is not None:
                found = cache.found(flight, cache.far.get(flight.key), self._lookups)
                if found is not ABSENT:
                    return found
            try:
                value = fetch(flight.key)
            except cache.settings.missing:
                value = None
            if inspect.iscoroutine(value):
                value.close()
                raise _not_this_kind(cache, fetch, "a bolt that is no AsyncBolt calls a function that is not async")
            entry = cache.entry_of(value)
            if cache.far is not None:
                entry = cache.far.put(flight.key, entry)
            cache.end(flight, entry)
            return entry.value

    def _wait(self, flight: Flight) -> Any:
        waiter = _ThreadWaiter()
        flight.join(waiter)
        try:
            while not waiter.woken.wait(_LOOK_SECONDS):
                pass
        finally:
            flight.leave(waiter)
        return self._cache.answer(flight, self._lookups)


class AsyncCache(_Cache):
    """A cache of an ``AsyncBolt``, made by ``AsyncBolt.cache``.

    Example:
        >>> import asyncio
        >>> from pystorm_source import AsyncBolt, Topology
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Names(AsyncBolt):
        ...     outputs = ["name string", "calls long"]
        ...     def initialize(self, conf, context):
        ...         self.names, self.calls = self.cache("names", ttl="10m"), 0
        ...     async def ask(self, number):
        ...         self.calls += 1
        ...         await asyncio.sleep(0.05)  # a call of the service
        ...         return f"customer {number}"
        ...     async def process(self, tup):
        ...         self.emit([await self.names.get(tup.values.n, self.ask), self.calls])
        >>> class Named(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [1]])
        ...     named = Names.spec(inputs=[numbers])
        >>> run_topology(Named).rows("named")
        [('customer 1', 1), ('customer 1', 1)]
    """

    async def get(self, key: Any, fetch: Callable[[Any], Awaitable[Any]]) -> Any:
        """Returns the value of a key; calls ``fetch`` if the cache has no fresh one. Others that want the key wait for
        this call; if it is cancelled, one of them makes it again.

        Args:
            key (Any): hashable; with ``redis`` a str, number, bool or None, or a tuple of them.
            fetch (Callable): async; takes the key and returns its value, or None if there is no value.

        Returns:
            Any: the value, which all callers share: do not change it. None: there is no value.

        Raises:
            ArgumentTypeError: a key or value that cannot be kept, or a ``fetch`` that is not async.
            RuntimeError: the ``fetch`` of a key asks for the same key.
            Exception: what ``fetch`` raises, for all waiters, too; it is not kept.
        """
        found = self._cache.find(key, self._lookups)
        while found is ABSENT:
            found, flight, leads = self._cache.ask(key, self._lookups, asyncio.current_task())
            if flight is not None:
                found = await (self._call(flight, fetch) if leads else self._wait(flight))
        return found

    async def _call(self, flight: Flight, fetch: Callable[[Any], Awaitable[Any]]) -> Any:
        cache = self._cache
        with self._leads(flight):
            if cache.far is not None:
                found = cache.found(flight, await _in_thread(cache.far.get, flight.key), self._lookups)
                if found is not ABSENT:
                    return found
            try:
                answer = fetch(flight.key)
                if not inspect.isawaitable(answer):
                    raise _not_this_kind(cache, fetch, "an AsyncBolt awaits what it calls")
                value = await answer
            except cache.settings.missing:
                value = None
            entry = cache.entry_of(value)
            if cache.far is not None:
                entry = await _in_thread(cache.far.put, flight.key, entry)
            cache.end(flight, entry)
            return entry.value

    async def _wait(self, flight: Flight) -> Any:
        inner = leading.get()
        if inner is not None and inner.is_inside(flight.name, flight.key):
            raise coded(
                RuntimeError,
                "PYSTORM_INVALID_ARGUMENT",
                f"cache({flight.name!r}): the fetch of a key asks for the same key, and would wait for itself. "
                f"Given: {given(flight.key)}",
            )
        waiter = _TaskWaiter(self._bolt)
        flight.join(waiter)
        try:
            await waiter.woken
        finally:
            flight.leave(waiter)
            waiter.close()
        return self._cache.answer(flight, self._lookups)


class _ThreadWaiter:
    """A waiting thread has no time-out to pause."""

    def __init__(self) -> None:
        self.woken = threading.Event()

    def wake(self) -> None:
        self.woken.set()

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class _TaskWaiter:
    """``woken``: a future of the loop that it waits in."""

    def __init__(self, bolt: Any):
        self._loop = asyncio.get_running_loop()
        self.woken: asyncio.Future[None] = self._loop.create_future()
        request = request_variable.get(None)
        self._request = request if request is not None and request.bolt is bolt else None
        self._batch = call_of(bolt)
        self._held: AsyncRequest | None = None
        self._is_paused = False

    def wake(self) -> None:
        self._soon(self._answered)

    def pause(self) -> None:
        self._soon(self._pause)

    def resume(self) -> None:
        self._soon(self._resume)

    def close(self) -> None:
        """Its time runs again."""
        if not self.woken.done():
            self.woken.cancel()
        self._resume()

    def _soon(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing waits any more
            self._loop.call_soon_threadsafe(call)

    def _answered(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)

    def _pause(self) -> None:
        if self.woken.done() or self._is_paused:
            return
        self._is_paused = True
        if self._request is not None:
            self._held = pause(self._request)
        if self._batch is not None:
            self._batch.pause()

    def _resume(self) -> None:
        if not self._is_paused:
            return
        self._is_paused = False
        held, self._held = self._held, None
        if held is not None:
            resume_request(held)
        if self._batch is not None:
            self._batch.resume()


def _in_thread(call: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
    return asyncio.get_running_loop().run_in_executor(None, call, *arguments)


def _not_this_kind(cache: SharedCache, fetch: Any, rule: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"cache({cache.settings.name!r}): {rule}. Given: {given(fetch)}", code="PYSTORM_INVALID_ARGUMENT"
    )
