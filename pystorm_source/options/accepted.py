"""What an option takes, read from the type of its field, in words for the pages and for messages."""

import json
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec

_IN_WORDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "text": "a text", "list": "a list"}
_SOME = 1000
"""The example of a number without a default, unless a bound forbids it."""
_SAID = re.compile(r"Expected `[\w| ]+`(, got `\w+`| [<>]=? [-\d.]+)?( - at .*)?|Invalid enum value .*", re.DOTALL)
"""Texts of msgspec that ``accepted`` replaces with its own."""
_LENGTH = re.compile(r"Expected `\w+` of length ([<>]=|==) (\d+)")
_LENGTHS = {">=": "at least", "<=": "at most", "==": "exactly"}


def type_of(field: msgspec.structs.FieldInfo) -> str:
    """Returns ``int``, ``bool``, ``text``, or the allowed words."""
    return " or ".join(_kinds(field.type))


def bounds_of(field: msgspec.structs.FieldInfo) -> str:
    """Returns ``1 … 16,777,216``, ``at least 1``, ``more than 0`` or an empty text."""
    low, high, above = _bound(field.type, "ge"), _bound(field.type, "le"), _bound(field.type, "gt")
    if low is not None and high is not None:
        return f"{low:,} … {high:,}"
    named = {"at least": low, "more than": above, "at most": high}
    return ", ".join(f"{words} {bound:,}" for words, bound in named.items() if bound is not None)


def accepted(field: msgspec.structs.FieldInfo, said: str) -> str:
    """Returns ``takes a whole number, at least 1, such as 1000``. ``said``: msgspec's error, appended in brackets if it
    says more; without its path, because ``wrong_part`` names the place."""
    facts = [" or ".join(_in_words(field.type))]
    if bounds := bounds_of(field).replace("…", "to"):
        facts.append(re.sub(r"(?<=\d),(?=\d)", "", bounds))
    if example := _example_of(field):
        facts.append(f"such as {example}")
    return f"takes {', '.join(facts)}" + ("" if _SAID.fullmatch(said) else f" ({_in_brackets(said)})")


def wrong_part(field: msgspec.structs.FieldInfo, value: Any) -> Any:
    """Returns the first entry of a table or list that the field does not take, in a table or list by itself; None if
    the value is neither, or no single entry is wrong."""
    if isinstance(value, Mapping):
        parts: Iterable[Any] = ({name: each} for name, each in value.items())
    elif isinstance(value, (list, tuple)):
        parts = ([each] for each in value)
    else:
        return None
    if not _takes(field, type(value)()):
        return None  # it takes no tables
    return next((part for part in parts if not _takes(field, part)), None)


def _takes(field: msgspec.structs.FieldInfo, value: Any) -> bool:
    try:
        msgspec.convert(value, field.type, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _in_brackets(said: str) -> str:
    """Returns msgspec's text without its path and quotes."""
    said = said.partition(" - at ")[0]
    if found := _LENGTH.fullmatch(said):
        return f"{_LENGTHS[found[1]]} {found[2]} long"
    return said.replace("`str`", "a text").replace("`", "'").replace("Expected ", "expected ")


def _kinds(hint: Any) -> Iterator[str]:
    origin = typing.get_origin(hint)
    if origin is Annotated:
        yield from _kinds(typing.get_args(hint)[0])
    elif origin is Literal:
        yield ", ".join(typing.get_args(hint))
    elif origin is dict:
        yield "texts by name"
    elif origin in (list, tuple):
        yield "list"
    elif origin in (typing.Union, types.UnionType):
        for part in typing.get_args(hint):
            yield from _kinds(part)
    else:
        yield {str: "text", type(None): "nothing"}.get(hint) or str(getattr(hint, "__name__", hint))


def _in_words(hint: Any) -> list[str]:
    """Returns the kinds in words, without None; allowed words one by one."""
    if choices := _choices(hint):
        numbers = [words for kind, words in _IN_WORDS.items() if kind in _kinds(hint)]  # int | Literal
        return [*numbers, *(repr(choice) for choice in choices)]
    return [_IN_WORDS.get(kind, kind) for kind in _kinds(hint) if kind != "nothing"]


def _choices(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return next((found for part in typing.get_args(hint) if (found := _choices(part))), ())


def _example_of(field: msgspec.structs.FieldInfo) -> str:
    """Returns an example value; empty if the option takes words or any text."""
    if _choices(field.type) or "bool" in (kinds := list(_kinds(field.type))):
        return ""
    if isinstance(field.default, (int, float, str)) and field.default != "":
        return json.dumps(field.default)
    if "int" not in kinds:
        return ""
    low, high = _bound(field.type, "ge"), _bound(field.type, "le")
    return str(max(_SOME if high is None else min(_SOME, high), low or 0))


def _bound(hint: Any, name: str) -> Any:
    """Returns msgspec's bound of that name, or None."""
    found = (getattr(meta, name) for meta in _metas(hint))
    bound = next((each for each in found if each is not None), None)
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _metas(hint: Any) -> Iterator[msgspec.Meta]:
    for part in typing.get_args(hint):
        if isinstance(part, msgspec.Meta):
            yield part
        else:
            yield from _metas(part)
