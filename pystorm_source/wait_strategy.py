"""Wait strategies by the keys ``topology.{spout,bolt,backpressure}.wait.*``: Storm's two, or a class of the user's.

A class of the user's is built without arguments, once per executor and situation, and has the methods of Storm's
interface ``IWaitStrategy``:

    class Patient:
        def prepare(self, conf: dict, situation: WaitSituation) -> None: ...
        def idle(self, idle_counter: int) -> int:
            time.sleep(0.01)             # nothing else ends this wait, not even a stop of the worker
            return idle_counter + 1      # passed to the next call in a row; the first one gets 0
"""

import enum
from collections.abc import Mapping
from typing import Any

from cython_core.wait_strategy import ParkWait, ProgressiveWait, UserWait, WaitStrategy
from pystorm_source.errors import OptionError, said
from pystorm_source.named import load_named
from pystorm_source.options import EngineOptions, parse

_STORMS_PACKAGE = "org.apache.storm.policy."
_STORMS = ("WaitStrategyProgressive", "WaitStrategyPark")


class WaitSituation(enum.Enum):
    """The situations of a wait, by Storm's names. The value is the part of the keys that names it."""

    SPOUT_WAIT = "spout"
    BOLT_WAIT = "bolt"
    BACK_PRESSURE_WAIT = "backpressure"

    @property
    def key(self) -> str:
        """The key that names the strategy."""
        return f"topology.{self.value}.wait.strategy"


def wait_strategy(situation: WaitSituation, conf: Mapping[str, Any]) -> WaitStrategy:
    """A new strategy for one executor, by the keys of the situation in its configuration.

    Raises OptionError for a wrong value, a class that is not found or is no wait strategy, and if it or its ``prepare``
    raises.
    """
    options = parse(EngineOptions, conf).wait_options(situation.value)
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
            f"{said(error)}. Given: {options.strategy!r}"
        ) from error
    return UserWait(strategy)


def check_wait_strategies(conf: Mapping[str, Any]) -> None:
    """Raises OptionError if a wait strategy of this configuration cannot be built. Builds none."""
    engine = parse(EngineOptions, conf)
    for situation in WaitSituation:
        name = engine.wait_options(situation.value).strategy
        if name.removeprefix(_STORMS_PACKAGE) not in _STORMS:
            _load(situation.key, name)


def _load(key: str, given: str) -> type[Any]:
    form = f"{', '.join(_STORMS)} or a class as module:Class, such as 'jobs.waits:Patient'"
    module, found = load_named(key, given, form, f", or name one of {', '.join(_STORMS)}", dots=True)
    if not isinstance(found, type):
        raise OptionError(
            f"option {key!r}: {module.__name__!r} has no class {given.partition(':')[2]!r}. Given: {given!r}"
        )
    for method in ("prepare(conf, situation)", "idle(idle_counter)"):
        if not callable(getattr(found, method.partition("(")[0], None)):
            raise OptionError(f"option {key!r}: a wait strategy defines {method}. Given: {given!r}")
    return found
