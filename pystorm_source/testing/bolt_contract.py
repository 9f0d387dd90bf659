"""``verify_bolt``, which checks a bolt against the laws of bolt_laws.py."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pystorm_source.api import BatchingBolt, Bolt, ComponentSpec, Stream
from pystorm_source.errors import ArgumentError, TopologyError, given
from pystorm_source.testing.bolt_laws import LAWS
from pystorm_source.testing.bolt_trial import BoltTrial, State
from pystorm_source.testing.law import (
    TimeLimit,
)
from pystorm_source.testing.script import ON


def verify_bolt(
    bolt: type[Bolt] | ComponentSpec,
    rows: Sequence[list[Any] | tuple[Any, ...] | ON],
    config: Mapping[str, Any] | None = None,
    *,
    fields: Sequence[str | Stream] | None = None,
    state: State | None = None,
    timeout: float = 60.0,
) -> None:
    """Runs a bolt over the rows in one go, then in every other way that Spark or the engine may run it; returns if it
    always emits the same rows.

    The most common mistake that it finds is state in ``self``. It runs one task of the bolt, with its own config.

    Args:
        bolt (type[Bolt] | ComponentSpec): the class, or its spec.
        rows (list): values of the tuples that it gets, a few dozen; ``ON(stream, values)`` for other streams than the
            default one.
        config (Mapping[str, Any]): configuration of the topology. Defaults to None.
        fields (list[str | Stream]): what the rows' spout declares, like its ``outputs``. Defaults to the fields of the
            stream that the spec subscribes to.
        state (str): "none": what it emits depends only on the tuple. "micro-batch": it gathers tuples and emits until
            the final tick, after which nothing is left. "instance": it may keep anything, and may lose it with the
            process. Defaults to None: "micro-batch" for a BatchingBolt, "none" for others.
        timeout (float): seconds of the machine's clock for all runs together. Defaults to 60.0.

    Raises:
        ContractBroken: the bolt breaks a law; names law, tuple, what was expected and found, and the remedy.
        TupleFailed: the bolt raised when run over the rows in one go; its cause is the bolt's own exception.
        TopologyError: it is not a bolt, the fields of its rows are unknown, or a row does not match them.
        ArgumentError: ``state`` is another value, or there are no rows.

    Example:
        >>> from pystorm_source.testing import verify_bolt
        >>> class Split(Bolt):
        ...     outputs = ["word string"]
        ...     def process(self, tup):
        ...         for word in tup.values.line.split():
        ...             self.emit([word])
        >>> verify_bolt(Split, [["the cow"], [""], ["the moon"]], fields=["line string"])
    """
    __tracebackhide__ = True  # for pytest: the component's frames tell more
    spec = _spec_of(bolt)
    if state is None:
        state = "micro-batch" if issubclass(spec.component_cls, BatchingBolt) else "none"
    if state not in ("none", "micro-batch", "instance"):
        raise ArgumentError(
            f"state is 'none', 'micro-batch' or 'instance'. Given: {given(state)}", code="PYSTORM_INVALID_ARGUMENT"
        )
    if not rows:
        raise ArgumentError(
            f"verify_bolt needs some rows, or it finds nothing. Given: {given(rows)}", code="PYSTORM_INVALID_ARGUMENT"
        )
    declared = list(fields or _fields_of(spec))
    _check_rows(rows, declared)
    with TimeLimit(spec.component_cls.__name__, timeout) as limit:
        trial = BoltTrial(spec, list(rows), declared, dict(config or {}), state, limit)
        for law in LAWS:
            limit.call(partial(trial.judge, law))


def _spec_of(bolt: Any) -> ComponentSpec:
    spec = bolt.spec() if isinstance(bolt, type) and issubclass(bolt, Bolt) else bolt
    if not isinstance(spec, ComponentSpec) or not issubclass(spec.component_cls, Bolt):
        raise TopologyError(
            f"verify_bolt takes a Bolt: the class or its spec. Given: {given(bolt)}", code="PYSTORM_INVALID_ARGUMENT"
        )
    return spec


def _fields_of(spec: ComponentSpec) -> list[Stream]:
    """Returns the streams of the first component that it subscribes to."""
    sources = [source.component for source, _ in spec.subscriptions if isinstance(source.component, ComponentSpec)]
    if not sources:
        raise TopologyError(
            "verify_bolt needs the fields of the rows: fields=['line string'], or a spec whose inputs are specs. "
            f"Given: {spec!r}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    return list(sources[0].streams)


def _check_rows(rows: Sequence[Any], fields: Sequence[Any]) -> None:
    """Refuses rows that do not fit: they come from the test, not from the bolt, so the bolt breaks no law."""
    streams = {stream.name: stream.fields for stream in Stream.all_of(fields, given_by="the rows")}
    for number, row in enumerate(rows, 1):
        stream, values = (row.stream, row.values) if isinstance(row, ON) else ("default", row)
        names = streams.get(stream)
        if isinstance(values, (list, tuple)) and names is not None and len(values) != len(names):
            raise TopologyError(
                f"row {number} of verify_bolt is to have a value for each field that the bolt's input declares on "
                f"stream {stream!r}, {list(names)}. Given: {given(values)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
