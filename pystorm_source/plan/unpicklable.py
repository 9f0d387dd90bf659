"""What of a topology cannot travel to Spark's tasks: Python names only the type, ``cannot pickle '_thread.lock'``."""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from pystorm_source.errors import TopologyError, given, said
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.plan.plan import Plan

_DEEPEST = 8
"""Steps from a class to what cannot be pickled. More: the search in a graph of objects takes long."""
_REMEDY = "open it in initialize(), which runs in the task, and keep it in an attribute of the component"
_SPARKS_REMEDY = (
    "components run in tasks, which have no SparkSession: read with it before, and hand plain values over by "
    "spec(config={...})"
)

_NOT_PICKLED = frozenset(("__dict__", "__weakref__", "__slots__", "_abc_impl"))  # of a class: made again on arrival

Dumps = Callable[[Any], bytes]


class Culprit(NamedTuple):
    """``place``: how it is reached, ``process() → global 'lock'``; ``value``: what cannot be pickled; ``error``."""

    place: str
    value: Any
    error: Exception


def check_picklable(plan: Plan, dumps: Dumps) -> None:
    """Raises TopologyError naming component, attribute or global, and type, if a component cannot be pickled."""
    for component in plan.components:
        if (found := culprit(component.cls, dumps)) is not None:
            raise TopologyError(
                f"component {component.name!r} ({component.cls.__name__}) cannot travel to Spark's tasks: "
                f"{described(found)}. Given: {without_credentials(given(found.value))}",
                code="PYSTORM_CANNOT_PICKLE",
            ) from None  # the message says it; the tracebacks of all pickling attempts add only 60 lines


def described(found: Culprit) -> str:
    """Place, type, exception and remedy, for a message."""
    kind = type(found.value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    remedy = _SPARKS_REMEDY if kind.__module__.startswith("pyspark.") else _REMEDY
    place = f"{found.place} is a {name}, which" if found.place else f"a {name}"
    return f"{place} cannot be pickled ({said(found.error, 200)}): {remedy}"


def culprit(value: Any, dumps: Dumps) -> Culprit | None:
    """The innermost part of a class or object that does not pickle; None if all of it does."""
    return _culprit(value, dumps, "", _DEEPEST, set())


def _culprit(value: Any, dumps: Dumps, place: str, steps: int, seen: set[int]) -> Culprit | None:
    if id(value) in seen:
        return None
    seen.add(id(value))
    try:
        dumps(value)
    except Exception as error:
        for name, part in _parts(value) if steps else ():
            if (inner := _culprit(part, dumps, f"{place} → {name}" if place else name, steps - 1, seen)) is not None:
                return inner
        return Culprit(place, value, error)
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of what is pickled along with a value."""
    if isinstance(value, type):
        for name, part in vars(value).items():
            if name not in _NOT_PICKLED and name not in vars(value).get("__slots__", ()):
                yield (f"{name}()" if _function_of(part) else f"attribute {name!r}"), part
        yield from ((f"base {base.__name__}", base) for base in value.__bases__)
    elif function := _function_of(value):
        yield from _parts_of_function(function)
    elif isinstance(value, property):
        yield from ((name, part) for name, part in (("get", value.fget), ("set", value.fset)) if part is not None)
    elif isinstance(value, Mapping):
        yield from ((f"key {given(key, 60)}", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"item {i}", part) for i, part in enumerate(value))
    elif _is_users(type(value)):
        yield from ((f"attribute {name!r}", part) for name, part in getattr(value, "__dict__", {}).items())


def _is_users(cls: type) -> bool:
    """Whether the attributes of its instances tell the user anything; a lock's or a session's do not."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None) or ""
    return cls.__module__.partition(".")[0] not in sys.stdlib_module_names - {"__main__"} and not (
        cls.__module__.startswith(("pyspark.", "builtins")) or "/site-packages/" in file
    )


def _function_of(value: Any) -> FunctionType | None:
    inner = value.__func__ if isinstance(value, (staticmethod, classmethod, MethodType)) else value
    inner = getattr(inner, "__wrapped__", inner) if not isinstance(inner, FunctionType) else inner
    return inner if isinstance(inner, FunctionType) else None


def _parts_of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"variable {name!r}", cell.cell_contents
        except ValueError:  # not set yet
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield f"global {name!r}", function.__globals__[name]
    for name, part in (function.__kwdefaults__ or {}).items():
        yield f"default of {name!r}", part
    yield from ((f"default {i}", part) for i, part in enumerate(function.__defaults__ or ()))
    yield from ((f"attribute {name!r}", part) for name, part in vars(function).items())


def _names(code: CodeType) -> dict[str, None]:
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found
