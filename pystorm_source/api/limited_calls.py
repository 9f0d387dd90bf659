"""Bolts whose calls take permits of rate limits, set by ``Bolt.spec(limits=[...])``."""

from contextlib import AsyncExitStack, ExitStack
from typing import Any

from cython_core.compiled.bolt import CompiledBolt
from cython_core.executors.async_executor import AsyncBase
from cython_core.routing.component_base import BoltBase
from pystorm_source.api.arrow_bolt import ArrowBolt
from pystorm_source.api.async_batch_bolt import AsyncBatchBolt
from pystorm_source.api.batching_bolt import BatchingBolt
from pystorm_source.api.join_bolt import JoinBolt
from pystorm_source.errors import OptionError
from pystorm_source.options.rate_limit import remedy_of_unknown


def limit_calls(bolt: Any) -> None:
    """Has each call of the bolt's method that gets tuples take a permit of each of its ``topology.bolt.limits``.

    Order: before an executor asks for that method. Raises OptionError for a name that is no limit.
    """
    options = bolt._pystorm_options
    names = options.bolt_limit_names
    for name in names:
        if name not in options.limits:
            raise OptionError(
                "topology.bolt.limits names limits of topology.rate.limit"
                f"{remedy_of_unknown(name, options.limits)} Given: {name!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
    if isinstance(bolt, CompiledBolt) or type(bolt).process_many is not BoltBase.process_many:
        raise OptionError(
            "a permit of topology.bolt.limits is one call for a tuple, and this bolt gets many in a call, or none in "
            f"Python: define process(tup), or take permits inside by self.limit. Given: {type(bolt).__name__}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    method = called_method(type(bolt))
    call = getattr(bolt, method)

    async def limited_async(*arguments: Any) -> Any:
        async with AsyncExitStack() as held:
            for name in names:
                await held.enter_async_context(bolt.limit(name))
            return await call(*arguments)

    def limited(*arguments: Any) -> Any:
        with ExitStack() as held:
            for name in names:
                held.enter_context(bolt.limit(name))
            return call(*arguments)

    setattr(bolt, method, limited_async if isinstance(bolt, AsyncBase) else limited)


def called_method(cls: type[Any]) -> str:
    """The method of a bolt's class that gets its tuples, other than ``process_many``."""
    if issubclass(cls, JoinBolt):
        return "process_join"
    return "process_batch" if issubclass(cls, (BatchingBolt, ArrowBolt, AsyncBatchBolt)) else "process"
