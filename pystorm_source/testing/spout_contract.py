"""``verify_spout``, which holds a spout to the laws of its kind: spout_laws.py, cursor_laws.py, queue_laws.py."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pystorm_source.api import ComponentSpec, CursorSpout, PartitionedSpout, QueueSpout
from pystorm_source.clock import Clock, ManualClock, SystemClock
from pystorm_source.errors import ArgumentError, TopologyError, given
from pystorm_source.testing import cursor_laws, queue_laws
from pystorm_source.testing.cursor_laws import CursorTrial
from pystorm_source.testing.law import (
    Law,
    TimeLimit,
    own_failure,
)
from pystorm_source.testing.polled_trial import PolledTrial
from pystorm_source.testing.queue_laws import QueueTrial
from pystorm_source.testing.spout_laws import GROWS, GROWS_REMEDY, LAWS, check_growth, same_rows_as
from pystorm_source.testing.spout_trial import SpoutTrial, driven_by

KINDS = (PartitionedSpout, CursorSpout, QueueSpout)


def verify_spout(
    spout: type[PartitionedSpout | CursorSpout | QueueSpout] | ComponentSpec,
    config: Mapping[str, Any] | None = None,
    *,
    clock: Clock | None = None,
    grow: Callable[[], None] | None = None,
    same_as: type[PartitionedSpout] | ComponentSpec | None = None,
    most_offsets: int = 10_000,
    timeout: float = 60.0,
) -> None:
    """Checks a spout against the laws that exactly-once reading relies on; returns if it keeps them all.

    For example, a PartitionedSpout: any instance reads a range again with the same result; adjacent ranges add up to
    the whole; a reader can start at any offset; ``split``, ``align`` and ``snapshot`` are pure; heads never go
    backwards; an interrupted run can be closed. A CursorSpout: the cursor moves with the rows; a fresh instance can go
    on from any cursor; a page that is not full is the last one. A QueueSpout: each message has a key, which stays the
    same when the message is delivered again; acknowledged messages do not come again. The check empties the queue.

    Args:
        spout (type[PartitionedSpout | CursorSpout | QueueSpout] | ComponentSpec): the class, or its spec. Its source
            holds a few dozen tuples, and no other process writes to it or reads its queue.
        config (Mapping[str, Any]): like the reader's options. Defaults to None.
        clock (Clock): for a spout that has a ``clock``. Defaults to a ManualClock stopped at the present time.
        grow (Callable): adds tuples to the source. It is called once; earlier tuples must stay unchanged, and new ones
            must come behind them. Not for a QueueSpout. Defaults to None.
        same_as (type[PartitionedSpout] | ComponentSpec): another reader of the source that must give the same rows,
            such as one with ``next_tuple`` for one with ``next_batch``. Only for a PartitionedSpout. Defaults to None.
        most_offsets (int): offsets (or rows, if there are no offsets) to read of each partition, from its first one;
            reads only 8 partitions. Defaults to 10000.
        timeout (float): seconds of the machine's clock for all checks. Defaults to 60.0.

    Raises:
        ContractBroken: the spout breaks a law; names law, partition, offsets, what was expected and found, and the
            remedy.
        TupleFailed: the spout raised when first started, queried or read; its cause is the spout's own exception.
        TopologyError: it is a spout of another kind, or cannot run.
        ArgumentError: ``same_as`` or ``grow`` for a spout that has no such law.
        OptionError: a wrong option.

    Example:
        >>> from pystorm_source.testing import verify_spout
        >>> class Squares(PartitionedSpout):
        ...     outputs = ["n long", "square long"]
        ...     def partitions(self):
        ...         return ["all"]
        ...     def latest(self, partition):
        ...         return 30
        ...     def open(self, partition, start, end):
        ...         self.offsets = iter(range(start, end))
        ...     def next_tuple(self):
        ...         for offset in self.offsets:
        ...             return self.emit([offset, offset * offset], tup_id=offset)
        ...         return False
        >>> verify_spout(Squares)
    """
    __tracebackhide__ = True  # for pytest: the component's frames tell more
    clock = clock or ManualClock(SystemClock().wall())
    spec = _spec_of(spout)
    name = spec.component_cls.__name__
    if not issubclass(spec.component_cls, PartitionedSpout):
        if same_as is not None or (grow is not None and issubclass(spec.component_cls, QueueSpout)):
            raise ArgumentError(
                f"{name}: same_as is for a PartitionedSpout, grow also for a CursorSpout. "
                f"Given: same_as={given(same_as)}, grow={given(grow)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        _verify_polled(spec, config, clock, grow, most_offsets, timeout)
        return
    with TimeLimit(name, timeout) as limit:
        trial = limit.call(lambda: _made(spec, lambda: SpoutTrial(driven_by(spec, config, clock), most_offsets)))
        for law in LAWS:
            limit.call(partial(trial.judge, law))
        if same_as is not None:
            other = _spec_of(same_as)
            limit.call(lambda: trial.judge(same_rows_as(other, config, clock)))
        if grow is not None:
            before = limit.call(lambda: (trial.snapshot(), {each: trial.whole(each) for each in trial.ranges}))
            grow()  # in this thread, where the test opened what it uses
            limit.call(lambda: trial.judge(Law(GROWS, GROWS_REMEDY, lambda trial: check_growth(trial, *before))))


def _verify_polled(
    spec: ComponentSpec,
    config: Mapping[str, Any] | None,
    clock: Clock,
    grow: Callable[[], None] | None,
    most_rows: int,
    timeout: float,
) -> None:
    __tracebackhide__ = True
    kind: type[PolledTrial] = CursorTrial
    laws = cursor_laws.LAWS
    if issubclass(spec.component_cls, QueueSpout):
        kind, laws = QueueTrial, queue_laws.LAWS
    with TimeLimit(spec.component_cls.__name__, timeout) as limit:
        trial = limit.call(lambda: _made(spec, lambda: kind(spec, config, clock, most_rows, limit)))
        for law in laws:
            limit.call(partial(trial.judge, law))
        if grow is not None:
            grow()
            limit.call(lambda: trial.judge(Law(cursor_laws.GROWS, cursor_laws.GROWS_REMEDY, cursor_laws.check_growth)))


def _made(spec: ComponentSpec, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception as error:
        failed = own_failure(spec.label, error)
        raise failed from failed.__cause__


def _spec_of(spout: Any) -> ComponentSpec:
    spec = spout.spec() if isinstance(spout, type) and issubclass(spout, KINDS) else spout
    if not isinstance(spec, ComponentSpec) or not issubclass(spec.component_cls, KINDS):
        raise TopologyError(
            "verify_spout takes a PartitionedSpout, a CursorSpout or a QueueSpout: the class or its spec. Another "
            f"spout promises nothing that could be read twice. Given: {given(spout)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    return copy.copy(spec)
