"""Wait strategies by the keys ``topology.{spout,bolt,backpressure}.wait.*``: Storm's two, or a user's class.

A user's class is built without arguments, once per executor and situation, and has the methods of Storm's interface
``IWaitStrategy``:

    class Patient:
        def prepare(self, conf: dict, situation: WaitSituation) -> None: ...
        def idle(self, idle_counter: int) -> int:
            time.sleep(0.01)             # nothing else ends this wait, not even a stop of the worker
            return idle_counter + 1      # passed to the next call in a row; the first one gets 0
"""

import enum
from collections.abc import Mapping
from typing import Any

from cython_core.schedulers.schedulers import ParkWait, ProgressiveWait, UserWait, WaitStrategy
from pystorm_source.errors import OptionError, said
from pystorm_source.options import EngineOptions
from pystorm_source.options.named import load_named

_STORMS_PACKAGE = "org.apache.storm.policy."
_BUILT_IN = ("WaitStrategyProgressive", "WaitStrategyPark")


class WaitSituation(enum.Enum):
    """What an executor waits for, by Storm's names. The value is the part of the keys that names it.

    Attributes:
        SPOUT_WAIT (WaitSituation): a spout has nothing to emit.
        BOLT_WAIT (WaitSituation): a bolt's queue is empty.
        BACK_PRESSURE_WAIT (WaitSituation): a producer's destination is full.

    Example:
        >>> from pystorm_source.options.wait_strategy import WaitSituation
        >>> WaitSituation.BACK_PRESSURE_WAIT.key
        'topology.backpressure.wait.strategy'
    """

    SPOUT_WAIT = "spout"
    BOLT_WAIT = "bolt"
    BACK_PRESSURE_WAIT = "backpressure"

    @property
    def key(self) -> str:
        """The key that names the strategy."""
        return f"topology.{self.value}.wait.strategy"


def wait_strategy(situation: WaitSituation, engine: EngineOptions, conf: Mapping[str, Any]) -> WaitStrategy:
    """Builds a strategy for one executor, by the keys of the situation. Storm's ``IWaitStrategy``.

    Args:
        situation (WaitSituation): what the executor waits for.
        engine (EngineOptions): the executor's options.
        conf (Mapping[str, Any]): the configuration for a user's class.

    Returns:
        WaitStrategy: its ``idle(idle_counter)`` waits and returns the next counter.

    Raises:
        OptionError: the class is not found or is not a wait strategy, or it or its ``prepare`` raises.

    Example:
        >>> from pystorm_source.options import EngineOptions, parse
        >>> from pystorm_source.options.wait_strategy import WaitSituation, wait_strategy
        >>> conf = {"topology.spout.wait.strategy": "WaitStrategyPark", "topology.spout.wait.park.microsec": 50}
        >>> wait_strategy(WaitSituation.SPOUT_WAIT, parse(EngineOptions, conf), conf).nanos_at(0)
        50000
    """
    options = engine.wait_options(situation.value)
    backs_off = situation is WaitSituation.SPOUT_WAIT
    woken = not backs_off
    name = options.strategy.removeprefix(_STORMS_PACKAGE)
    if name == "WaitStrategyPark":
        return ParkWait(options.park_microsec, woken, backs_off)
    if name == "WaitStrategyProgressive":
        levels = (options.level1_count, options.level2_count, options.level3_sleep_millis)
        return ProgressiveWait(*levels, woken, backs_off)
    cls = _load(situation.key, options.strategy)
    try:
        strategy = cls()
        strategy.prepare(dict(conf), situation)
    except Exception as error:
        raise OptionError(
            f"option {situation.key!r}: {cls.__name__}() or its prepare(conf, situation) raised "
            f"{said(error)}. Given: {options.strategy!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from error
    return UserWait(strategy)


def check_wait_strategies(engine: EngineOptions) -> None:
    """Checks the wait strategies that these options name, without building them.

    Args:
        engine (EngineOptions): the options.

    Raises:
        OptionError: a class is not found or is not a wait strategy.

    Example:
        >>> from pystorm_source.options import EngineOptions, parse
        >>> from pystorm_source.options.wait_strategy import check_wait_strategies
        >>> check_wait_strategies(parse(EngineOptions, {"topology.bolt.wait.strategy": "collections:Counter"}))
        Traceback (most recent call last):
        pystorm_source.errors.OptionError: [PYSTORM_INVALID_OPTION] option 'topology.bolt.wait.strategy': a ...
    """
    for situation in WaitSituation:
        name = engine.wait_options(situation.value).strategy
        if name.removeprefix(_STORMS_PACKAGE) not in _BUILT_IN:
            _load(situation.key, name)


def _load(key: str, given: str) -> type[Any]:
    form = f"{', '.join(_BUILT_IN)} or a class as module:Class, such as 'jobs.waits:Patient'"
    module, found = load_named(key, given, form, f", or name one of {', '.join(_BUILT_IN)}", dots=True)
    if not isinstance(found, type):
        raise OptionError(
            f"option {key!r}: {module.__name__!r} has no class {given.partition(':')[2]!r}. Given: {given!r}",
            code="PYSTORM_NAME_NOT_FOUND",
        )
    for method in ("prepare(conf, situation)", "idle(idle_counter)"):
        if not callable(getattr(found, method.partition("(")[0], None)):
            raise OptionError(
                f"option {key!r}: a wait strategy defines {method}. Given: {given!r}", code="PYSTORM_INVALID_OPTION"
            )
    return found
