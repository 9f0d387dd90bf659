"""Bolts that wait for external systems, for many tuples at a time."""

from cython_core.executors.async_executor import AsyncBase
from cython_core.routing.failure_kinds import Hopeless
from cython_core.tuples.tuple import Tuple
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.cache import AsyncCache
from pystorm_source.errors import MethodMissingError


class AsyncBolt(AsyncBase, Bolt):
    """A bolt whose ``process`` is ``async def``: many tuples of a task wait for external systems at a time.

    Emits in ``process`` are anchored to its own tuple, which is acked when the coroutine returns (``auto_ack``) and
    failed when it raises (``auto_fail``), by the rules of ``Bolt``. ``initialize``, ``cleanup`` and ``process_tick``
    may be ``async def`` as well, to open and close a session. All coroutines of a task run in one thread: between two
    ``await``, no other one runs. A call that blocks without ``await`` holds all of them up.

    The keys are ``topology.async.max.pending`` (calls in flight in each task, 1000 by default; or ``adaptive``, see
    ``is_overload``), ``topology.async.request.timeout.secs`` (30 by default; then the tuple fails and the call is
    cancelled) and ``topology.async.ordered`` (results leave in the order of the tuples, by default False).

    Example:
        >>> import asyncio
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Lookup(AsyncBolt):
        ...     outputs = ["user string", "age long"]
        ...     async def process(self, tup):
        ...         await asyncio.sleep(0)  # a request to a server
        ...         self.emit([tup.values.user, 42])
        >>> class Ages(Topology):
        ...     users = MemorySpout.spec(fields=["user string"], rows=[["ann"], ["bob"]])
        ...     ages = Lookup.spec(inputs=[users])
        >>> sorted(run_topology(Ages).rows("ages"))
        [('ann', 42), ('bob', 42)]
    """

    async def process(self, tup: Tuple) -> None:  # type: ignore[override]
        """Handles one tuple; other calls run while it awaits. Every subclass defines it.

        Args:
            tup (Tuple): the tuple. Its values are shared with other receivers: do not change them.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define async def process(tup)", code="PYSTORM_INVALID_COMPONENT"
        )

    def cache(  # type: ignore[override]
        self,
        name: str,
        *,
        ttl: str | float,
        size: int | None = None,
        missing_ttl: str | float | None = None,
        missing: type[Exception] | tuple[type[Exception], ...] = (),
        stale: str | float = 0,
        redis: str | None = None,
    ) -> AsyncCache:
        """As ``Bolt.cache``: ``await self.customers.get(key, self.fetch)``, where ``fetch`` is async.

        Args:
            name (str): the cache's name, for its tasks and its counts.
            ttl (str | float): how long a value is kept: seconds, or a text such as "10m".
            size (int): entries in a process, at most. Defaults to 10,000; not with ``redis``.
            missing_ttl (str | float): as ``ttl``, for None. Defaults to ``ttl``.
            missing (type | tuple): exceptions of a call which mean that there is no value. Defaults to ().
            stale (str | float): as ``ttl``: how long after its ttl a value is still served while one tuple asks for it
                again. Defaults to 0.
            redis (str): the URL of a Redis that keeps the entries. Defaults to None: the process keeps them.

        Returns:
            AsyncCache: ask it with ``get``.

        Raises:
            ArgumentError: an argument that makes no sense, or a cache of that name has other settings.
            OptionError: ``redis`` is no URL of a Redis, or its package is missing.
            RuntimeError: the bolt is in no running topology.

        Example:
            >>> from pystorm_source.spouts import MemorySpout
            >>> from pystorm_source.testing import run_topology
            >>> class Greets(AsyncBolt):
            ...     outputs = ["greeting string"]
            ...     def initialize(self, conf, context):
            ...         self.greetings = self.cache("greetings", ttl="10m", size=100_000)
            ...     async def fetch(self, user):
            ...         return f"hello {user}"  # a call of the service
            ...     async def process(self, tup):
            ...         self.emit([await self.greetings.get(tup.values.user, self.fetch)])
            >>> class Greetings(Topology):
            ...     users = MemorySpout.spec(fields=["user string"], rows=[["ann"]])
            ...     greets = Greets.spec(inputs=[users])
            >>> run_topology(Greetings).rows("greets")
            [('hello ann',)]
        """
        return self._pystorm_cache(AsyncCache, name, ttl, size, missing_ttl, missing, stale, redis)

    def is_overload(self, error: BaseException) -> bool:
        """Whether an exception of ``process`` means that the service is overloaded. Then
        ``topology.async.max.pending=adaptive`` lowers the number of calls in flight, and the circuit breaker of a
        ``self.limit`` block counts a failure, unless ``topology.retry.on`` says ``never``. Override it if ``process``
        also fails for other reasons, such as bad input; a time-out always counts.

        Args:
            error (BaseException): what ``process`` has raised.

        Returns:
            bool: by default True unless it is a ``Hopeless``, which is the tuple's fault.

        Example:
            >>> class Asks(AsyncBolt):
            ...     def is_overload(self, error):
            ...         return not isinstance(error, ValueError)
            >>> Asks().is_overload(ValueError("a name is empty"))
            False
        """
        return not isinstance(error, Hopeless)
