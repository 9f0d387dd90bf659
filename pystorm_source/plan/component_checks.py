"""Every check that a component of a topology must pass by itself."""

import inspect
import math
from typing import Any

from cython_core.compiled.bolt import CompiledBolt
from pystorm_source.api.arrow_bolt import ArrowBolt
from pystorm_source.api.async_batch_bolt import AsyncBatchBolt
from pystorm_source.api.async_bolt import AsyncBolt
from pystorm_source.api.batching_bolt import BatchingBolt
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.cursor_spout import CursorSpout
from pystorm_source.api.join_bolt import JoinBolt
from pystorm_source.api.key_state import TIMER_FIELDS
from pystorm_source.api.limited_calls import called_method
from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.queue_spout import QueueSpout
from pystorm_source.api.spout import Spout
from pystorm_source.api.stateful_bolt import StatefulBolt
from pystorm_source.api.stream import Stream
from pystorm_source.api.topology import Topology
from pystorm_source.errors import TopologyError, given
from pystorm_source.plan.key_states import refuse_unkept
from pystorm_source.plan.unplaceable import refuse_unplaceable
from pystorm_source.types.arrow import field_type

GETS = {
    CompiledBolt: "a CompiledBolt, whose process_tuple gets one tuple at a time",
    BatchingBolt: "a BatchingBolt, whose process_batch gets the tuples of a key",
    JoinBolt: "a JoinBolt, whose process_join gets tuples that belong together",
    StatefulBolt: "a StatefulBolt, whose process gets one tuple at a time",
    ArrowBolt: "an ArrowBolt, whose process_batch gets Arrow batches",
    AsyncBolt: "an AsyncBolt, whose process is a coroutine",
}


SIGNATURES: dict[type[Any], str] = {
    BatchingBolt: "process_batch(key, tups)",
    JoinBolt: "process_join(tups)",
    ArrowBolt: "process_batch(batch)",
    AsyncBatchBolt: "process_batch(tups)",
    AsyncBolt: "process(tup)",
}
"""The method that gets the tuples of a bolt of that class. Order: a subclass before its base."""


OF_SPOUTS_WITH_NOTES: dict[type[Any], tuple[dict[str, str], dict[str, int]]] = {
    CursorSpout: ({"read": "cursor, limit"}, {"page_rows": 1, "remembered": 0}),
    QueueSpout: ({"receive": "count", "acknowledge": "ids"}, {"receive_count": 1, "remembered": 0}),
}
"""Class → the methods that a subclass must define, with their arguments, and its attributes with their least values."""


def _check_one_kind(cls: type[Any], where: str) -> None:
    kinds = [kind for kind in GETS if issubclass(cls, kind)]
    if len(kinds) > 1 and set(kinds) != {BatchingBolt, AsyncBolt}:
        raise TopologyError(
            f"bolt {where} is {GETS[kinds[0]]}, and {GETS[kinds[1]]}; it cannot be both: derive it from one of them. "
            f"Given: {cls.__name__}",
            code="PYSTORM_INVALID_COMPONENT",
        )


def _check_batches(cls: type[AsyncBatchBolt], where: str) -> None:
    if cls.process is not AsyncBatchBolt.process:
        raise TopologyError(
            f"bolt {where} is an AsyncBatchBolt, whose process() gathers tuples for process_batch(tups): rename its "
            f"own, or derive it from AsyncBolt. Given: {cls.__name__}.process",
            code="PYSTORM_INVALID_COMPONENT",
        )
    _check_number(cls, "batch_rows", 1, where)
    _check_number(cls, "batch_seconds", 0, where)


def _check_state(cls: type[StatefulBolt], where: str) -> None:
    """Raises TopologyError, or SchemaError for a wrong type of a state's field."""
    fields = Stream.all_of(cls.state_fields, given_by=f"state_fields of {where}")
    if len(fields) != 1 or not fields[0].typed:
        raise TopologyError(
            f"bolt {where} keeps a state: declare its fields with their types in `state_fields`, such as "
            f"state_fields = ['count long']. Given: {given(cls.state_fields)}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    for name, ddl in zip(fields[0].fields, fields[0].types, strict=True):
        of = f"field {name!r} of the state of {where}"
        refuse_unkept(field_type(ddl or "", of), of)
    if taken := [name for name in fields[0].fields if name in TIMER_FIELDS]:
        raise TopologyError(
            f"bolt {where} keeps a state, and fields of these names keep the timers of keys: choose others in "
            f"`state_fields`. Given: {taken!r}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    if not cls.auto_ack:
        raise TopologyError(
            f"bolt {where} keeps a state, and acks tuples by itself: leave auto_ack as it is, for a tuple that fails "
            "after other tuples were processed would count twice. Given: auto_ack=False",
            code="PYSTORM_INVALID_COMPONENT",
        )


def _check_spout_with_notes(spec: ComponentSpec, cls: type[Any], where: str) -> None:
    base, methods, numbers = next(
        (base, *checked) for base, checked in OF_SPOUTS_WITH_NOTES.items() if issubclass(cls, base)
    )
    for method, arguments in methods.items():
        if getattr(cls, method) is getattr(base, method):
            raise _invalid(f"spout {where} must define {method}({arguments})", cls.__name__)
        function = getattr(cls, method)
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise _invalid(f"{method}() of {where} must return its answer: neither yield nor async def", f"{function}")
    if cls.next_tuple is not base.next_tuple:
        raise _invalid(
            f"spout {where} is a {base.__name__}, whose rows come from {next(iter(methods))}(): remove its "
            "next_tuple(), or derive it from Spout",
            f"{cls.__name__}.next_tuple",
        )
    _check_number(cls, "poll_seconds", 0, where)
    for name, least in numbers.items():
        value = getattr(cls, name)
        if type(value) is not int or value < least:
            raise _invalid(f"{name} of spout {where} must be an int of at least {least}", given(value))
    if issubclass(cls, CursorSpout) and 0 < cls.remembered < cls.page_rows:
        raise _invalid(
            f"`remembered` of spout {where} must be 0 or at least page_rows, {cls.page_rows}: known rows of a page "
            "would come again",
            given(cls.remembered),
        )
    if issubclass(cls, CursorSpout) and cls.replayable and cls.remembered:
        raise _invalid(
            f"spout {where} is `replayable`, so its cursor never goes back, and nothing is `remembered`: leave one of "
            "the two out",
            f"remembered={cls.remembered}",
        )
    if issubclass(cls, QueueSpout) and cls.lease_seconds is not None:
        _check_number(cls, "lease_seconds", 0, where)
    default = spec.stream("default")
    if default is None or default.direct:
        raise _invalid(
            f"spout {where} gives rows of its default stream: declare their fields in `outputs`, such as outputs = "
            "['id long'], without direct=True",
            f"the streams {[stream.name for stream in spec.streams]!r}",
        )
    if any(tasks > 1 for tasks in (spec.par.values() if isinstance(spec.par, dict) else [spec.par or 1])):
        raise _invalid(
            f"spout {where} is a {base.__name__}, which has one task: leave `par` out, and give the bolts behind it "
            "more tasks",
            f"par={spec.par!r}",
        )


def _check_number(cls: type[Any], name: str, least: float, where: str) -> None:
    value = getattr(cls, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < math.inf:
        raise _invalid(f"{name} of {where} must be a number of at least {least}", given(value))


def _invalid(what: str, found: str) -> TopologyError:
    return TopologyError(f"{what}. Given: {found}", code="PYSTORM_INVALID_COMPONENT")


def _meant_instead(cls: type[Any]) -> str:
    """For a bolt without the method that is called: what another method of it may have been meant for."""
    if issubclass(cls, ArrowBolt):
        found = next((name for name in ("process", "process_batches") if hasattr(cls, name) and _is_own(cls, name)), "")
        return f": {found}() of an ArrowBolt is never called" if found else ""
    if not issubclass(cls, BatchingBolt) and hasattr(cls, "process_batch"):
        return ", or derive from ArrowBolt, whose process_batch(batch) gets Arrow batches"
    return ""


def _is_own(cls: type[Any], name: str) -> bool:
    return getattr(cls, name) is not getattr(ArrowBolt, name, None)


def check_component(spec: ComponentSpec, topology: type[Topology]) -> None:
    """Raises TopologyError for a component that cannot run, SchemaError for unknown types."""
    cls = spec.component_cls
    where = f"{spec.label!r} of {topology.__name__}"
    refuse_unplaceable(spec, where)
    for stream in spec.streams:
        for field, ddl in zip(stream.fields, stream.types, strict=True):
            if ddl is not None:
                field_type(ddl, f"field {field!r} of {spec.label}.{stream.name}")
    if all(issubclass(cls, kind) for kind in (Spout, Bolt)):
        raise TopologyError(
            f"component {where} must be a Spout or a Bolt, not both. Given: {cls.__name__}",
            code="PYSTORM_INVALID_COMPONENT",
        )
    if issubclass(cls, Bolt):
        _check_one_kind(cls, where)
        if issubclass(cls, StatefulBolt):
            _check_state(cls, where)
        method = _method_of_bolt(cls, where)
        base = next((base for base in SIGNATURES if issubclass(cls, base)), Bolt)
        missing = getattr(cls, method) is getattr(base, method)
        if missing and not (issubclass(cls, BatchingBolt) and cls.process_batches is not BatchingBolt.process_batches):
            signature = _signature(cls, SIGNATURES.get(base, "process(tup)"))
            raise TopologyError(
                f"bolt {where} must define {signature}{_meant_instead(cls)}. Given: {cls.__name__}",
                code="PYSTORM_INVALID_COMPONENT",
            )
    elif issubclass(cls, PartitionedSpout):
        method = "next_batch" if cls.gives_batches() else "next_tuple"
        _check_number(cls, "poll_seconds", 0, where)
        default = spec.stream("default")
        if method == "next_batch" and default is None:
            raise TopologyError(
                f"spout {where} gives Arrow batches, which are rows of its default stream: declare its fields in "
                f"`outputs`, such as outputs = ['word string']. Given: the streams "
                f"{[stream.name for stream in spec.streams]!r}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        if method == "next_batch" and default is not None and default.direct:
            raise TopologyError(
                f"spout {where} gives Arrow batches, whose rows name no task: declare its default stream without "
                f"direct=True, or define next_tuple(). Given: {default!r}",
                code="PYSTORM_INVALID_COMPONENT",
            )
    else:
        method = "next_tuple"
        if issubclass(cls, Spout) and cls.next_tuple is Spout.next_tuple:
            raise TopologyError(
                f"spout {where} must define next_tuple(). Given: {cls.__name__}", code="PYSTORM_INVALID_COMPONENT"
            )
        if issubclass(cls, tuple(OF_SPOUTS_WITH_NOTES)):
            _check_spout_with_notes(spec, cls, where)
    # A call of such a function only makes an object that is never run: no error, and no tuple ever.
    for name in (method, "process_tick", "initialize", "cleanup"):
        function = getattr(cls, name, None)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TopologyError(
                f"{name}() of {where} must not yield, or nothing of it ever runs: rows leave by self.emit([...]). "
                f"Given: {cls.__name__}.{name}",
                code="PYSTORM_INVALID_COMPONENT",
            )
    function = getattr(cls, method, None)
    if issubclass(cls, AsyncBolt):
        if not inspect.iscoroutinefunction(function):
            raise TopologyError(
                f"{method}() of {where} must be async def, as that of every AsyncBolt; derive it from Bolt if it waits "
                f"for nothing. Given: {cls.__name__}.{method}",
                code="PYSTORM_INVALID_COMPONENT",
            )
        if issubclass(cls, AsyncBatchBolt):
            _check_batches(cls, where)
        return
    for name in (method, "initialize", "cleanup", "process_tick"):
        if inspect.iscoroutinefunction(getattr(cls, name, None)):
            raise TopologyError(
                f"{name}() of {where} must be a plain def, not async; bolts whose methods are async derive from "
                f"AsyncBolt. Given: {cls.__name__}.{name}",
                code="PYSTORM_INVALID_COMPONENT",
            )


def _signature(cls: type[Any], method: str) -> str:
    return f"async def {method}" if issubclass(cls, AsyncBolt) else method


def _method_of_bolt(cls: type[Bolt], where: str) -> str:
    """The method that gets its tuples."""
    if cls.process_many is Bolt.process_many:
        return called_method(cls)
    signatures = {**SIGNATURES, CompiledBolt: "cdef int process_tuple(tup)"}
    for base, method in signatures.items():
        if issubclass(cls, base):
            raise TopologyError(
                f"bolt {where} is of the class {base.__name__}, whose tuples come to {_signature(base, method)}, never "
                "to process_many: "
                f"derive it from Bolt alone, or rename the method. Given: {cls.__name__}.process_many",
                code="PYSTORM_INVALID_COMPONENT",
            )
    for each in cls.__mro__:
        if "process_many" in vars(each) and "process" not in vars(each):
            break  # it takes the place of the process of a base
        if "process" in vars(each):
            raise TopologyError(
                f"bolt {where} defines process_many(tups), so its process(tup) would never be called: remove one of "
                f"them. Given: {each.__name__}.process",
                code="PYSTORM_INVALID_COMPONENT",
            )
    return "process_many"
