"""Bolts: they process tuples."""

from typing import Any, TypeVar

from cython_core.arrow.row_error import coded
from cython_core.routing.component_base import BoltBase
from cython_core.tuples.tuple import SYSTEM_COMPONENT, TICK_STREAM, Tuple, is_final_tick
from pystorm_source.api.cache import AsyncCache, Cache
from pystorm_source.api.component import Component
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.spec_config import spec_config
from pystorm_source.caches.settings import settings_of
from pystorm_source.errors import ArgumentTypeError, MethodMissingError, given

_Kind = TypeVar("_Kind", Cache, AsyncCache)


class Bolt(Component, BoltBase):
    """A bolt: ``process`` gets one tuple and may emit any number. streamparse's ``Bolt``.

    To implement: ``process``. The engine calls it once per tuple; ``initialize`` once before, ``cleanup`` at the end.

    ``emit_many`` emits many rows in one call; a bolt that defines ``process_many`` gets many tuples in one.

    By default an exception fails the Spark task, and Spark reads the range again. With ``exit_on_exception = False``
    it is logged and counted, the tuple is failed, and the bolt goes on with the next one.

    An instance serves one task, in one thread; it lives from micro-batch to micro-batch and may be lost with its
    process. Keep in ``self`` what can be made again (connections, caches): state that must last belongs to Spark.

    Attributes:
        auto_anchor (bool): emits are anchored to the tuple in ``process``. Defaults to True.
        auto_ack (bool): the tuple is acked when ``process`` returns. Defaults to True.
        auto_fail (bool): the tuple is failed when ``process`` raises. Defaults to True.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Split(Bolt):
        ...     outputs = ["word string"]
        ...     def process(self, tup):
        ...         for word in tup.values.line.split():
        ...             self.emit([word])
        >>> class Words(Topology):
        ...     lines = MemorySpout.spec(fields=["line string"], rows=[["the cow"]])
        ...     words = Split.spec(inputs=[lines])
        >>> run_topology(Words).rows("words")
        [('the',), ('cow',)]
    """

    auto_anchor = True
    auto_ack = True
    auto_fail = True

    def process(self, tup: Tuple) -> None:
        """Handles one tuple. Every subclass defines it.

        Args:
            tup (Tuple): the tuple. Its values are shared with other receivers: do not change them.
        """
        raise MethodMissingError(f"{type(self).__name__} must define process(tup)", code="PYSTORM_INVALID_COMPONENT")

    def idempotency_key(self, tup: Tuple) -> str:
        """Returns a text that names the input row of a tuple, for services that must do each row once. It stays the
        same when the row is processed again: by a retry, by another Spark task, or after a restart.

        For a source, it names topology, spout, partition and offset. For an operator (``apply``), it has the values of
        the columns ``key=[...]``. Without ``key``, it has topology, query, micro-batch, partition and row number. A
        retried task gets the same ones if Spark reads the same rows in the same order: not after a shuffle. If rows of
        two uses of the topology would get the same key, name each use with ``use`` (docs/OPERATOR.md). Several tuples
        of one input row have the same key: add what tells them apart.

        Args:
            tup (Tuple): the tuple in ``process``, or one that the bolt has not acked or failed yet.

        Returns:
            str: the key, at most a few hundred characters; longer if the columns of ``key`` are.

        Raises:
            ValueError: the tuple comes from several input rows or from no row with an offset, or nothing distinguishes
                this use of the topology from another one.

        Example:
            >>> from pystorm_source.spouts import MemorySpout
            >>> from pystorm_source.testing import run_topology
            >>> class Pay(Bolt):
            ...     outputs = ["key string"]
            ...     def process(self, tup):
            ...         self.emit([self.idempotency_key(tup)])
            >>> class Payments(Topology):
            ...     orders = MemorySpout.spec(fields=["id long"], rows=[[7], [8]])
            ...     pay = Pay.spec(inputs=[orders])
            >>> run_topology(Payments).rows("pay")
            [('Payments/orders/0/0',), ('Payments/orders/0/1',)]
        """
        key = self._pystorm_place.key_of_tuple(tup) if self._pystorm_place is not None else None
        if key is None:
            raise coded(
                ValueError,
                "PYSTORM_INVALID_ANCHOR",
                f"{type(self).__name__}.idempotency_key: {self._why_no_key()}: make a key out of the tuple's values. "
                f"Given: {given(tup)}",
            )
        return str(key)

    def _why_no_key(self) -> str:
        if self._pystorm_place is not None and self._pystorm_place.refused:
            return str(self._pystorm_place.refused)
        return "the tuple stems from several input rows, or from none that has an offset"

    def cache(
        self,
        name: str,
        *,
        ttl: str | float,
        size: int | None = None,
        missing_ttl: str | float | None = None,
        missing: type[Exception] | tuple[type[Exception], ...] = (),
        stale: str | float = 0,
        redis: str | None = None,
    ) -> Cache:
        """Returns a cache for a service's answers: ``self.customers.get(key, self.fetch)``. Call it in ``initialize``.

        All tasks of a process that name it share it; with ``redis``, all processes do. If several tuples want the same
        key at a time, one makes the call and the others wait for it. Exceptions are not kept (docs/EFFECTS.md).

        Args:
            name (str): the cache's name, for its tasks and its counts.
            ttl (str | float): how long a value is kept: seconds, or a text such as "10m".
            size (int): entries in a process, at most; the least recently used ones leave first. Defaults to 10,000; not
                with ``redis``.
            missing_ttl (str | float): as ``ttl``, for None, which means that there is no value; 0: None is not kept.
                Defaults to ``ttl``.
            missing (type | tuple): exceptions of a call which mean that there is no value: they count as None.
                Defaults to ().
            stale (str | float): as ``ttl``: how long after its ttl a value is still served while one tuple asks for it
                again. Defaults to 0.
            redis (str): the URL of a Redis that keeps the entries, such as "redis://:password@host:6379/0". Defaults to
                None: the process keeps them.

        Returns:
            Cache: ask it with ``get``.

        Raises:
            ArgumentError: an argument that makes no sense, or a cache of that name has other settings.
            OptionError: ``redis`` is no URL of a Redis, or its package is missing.
            RuntimeError: the bolt is in no running topology.

        Example:
            >>> from pystorm_source.spouts import MemorySpout
            >>> from pystorm_source.testing import run_topology
            >>> class Rates(Bolt):
            ...     outputs = ["rate double"]
            ...     def initialize(self, conf, context):
            ...         self.rates = self.cache("rates", ttl="1h", missing=KeyError)
            ...     def process(self, tup):
            ...         self.emit([self.rates.get(tup.values.currency, {"EUR": 1.0}.__getitem__)])
            >>> class Converted(Topology):
            ...     sums = MemorySpout.spec(fields=["currency string"], rows=[["EUR"], ["XXX"]])
            ...     rates = Rates.spec(inputs=[sums])
            >>> run_topology(Converted).rows("rates")
            [(1.0,), (None,)]
        """
        return self._pystorm_cache(Cache, name, ttl, size, missing_ttl, missing, stale, redis)

    def _pystorm_cache(self, kind: type[_Kind], name: str, *settings: Any) -> _Kind:
        """Returns the cache of that name, as this kind of bolt uses it."""
        if self._pystorm_caches is None:
            raise coded(
                RuntimeError,
                "PYSTORM_EMIT_OUTSIDE_OF_RUN",
                f"{type(self).__name__}.cache: the bolt is in no running topology: run it by run_topology, or by "
                f"Spark. Given: {given(name)}",
            )
        found = self._pystorm_caches.of(settings_of(name, *settings))
        return kind(self, found, self._pystorm_lookups.of(name, found.entries))

    @staticmethod
    def is_tick(tup: Tuple) -> bool:
        """Whether this is a tick tuple of the engine. Ticks come to ``process_tick``, never to ``process``.

        Args:
            tup (Tuple): any tuple.
        """
        return tup.component == SYSTEM_COMPONENT and tup.stream == TICK_STREAM

    @staticmethod
    def is_final_tick(tup: Tuple) -> bool:
        """Whether this is the tick at the end of a range of a micro-batch, not a tick of the clock.

        Its value is 0; any other tick has the period in seconds. It arrives once per range: a Spark task reads one
        range of the micro-batch, and no task knows whether its process gets another one.

        Args:
            tup (Tuple): what ``process_tick`` was given.

        Example:
            >>> Bolt.is_final_tick(Tuple(stream="__tick", values=(0,)))
            True
            >>> Bolt.is_final_tick(Tuple(stream="__tick", values=(10,)))
            False
        """
        return is_final_tick(tup)

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        limits: list[str] | None = None,
        processes: int = 0,
    ) -> ComponentSpec:
        """This bolt for a Topology.

        Args:
            name (str): name of the component. Defaults to its attribute's name in the Topology.
            inputs (ComponentSpec | GlobalStreamId | list | dict): what it subscribes to: a spec or
                ``spec["stream"]``, a list of these (shuffled), or a dict of these to Groupings.
            par (int | dict[str, int]): tasks inside one Spark task, at least 1; or environment → tasks. Defaults to
                the class's ``par``.
            config (dict): configuration of this component only, JSON. Defaults to the class's ``config``.
            limits (list[str]): names of ``topology.rate.limit``: each call of ``process`` (``process_batch``,
                ``process_join``) is one call of these services, as in ``with self.limit(name)``. Defaults to no limits.
            processes (int): number of child processes of the Spark task to run its tasks in, which gives a heavy bolt
                as many cores (set ``spark.task.cpus``). ``par`` must be at least this number, and is this number if
                neither spec nor class sets it. Defaults to 0: tasks run in the Spark task's process.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.

        Raises:
            ArgumentTypeError: an argument of another type.
            TopologyError: a name that begins with ``__``, ``par`` below 1, or fewer tasks than processes.
        """
        if limits is not None:
            if not isinstance(limits, (list, tuple)) or not all(isinstance(name, str) for name in limits):
                raise ArgumentTypeError(
                    f"limits of {cls.__name__}.spec are names of topology.rate.limit, such as limits=['api']. Given: "
                    f"{given(limits)}",
                    code="PYSTORM_INVALID_ARGUMENT",
                )
            config = spec_config(cls.config, config, {"topology.bolt.limits": ",".join(limits)})
        return ComponentSpec(cls, name=name, inputs=inputs, par=par, config=config, processes=processes)
