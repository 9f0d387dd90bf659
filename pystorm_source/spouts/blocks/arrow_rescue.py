"""Splits columns of a file into values that fit their declared types, and the rest by row."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import types

from cython_core.arrow.lossless_cast import conform_array
from cython_core.arrow.value_converter import Misfit
from pystorm_source.spouts.blocks.fit_mask import fit_mask
from pystorm_source.types.json_text import plain

Conform = Callable[[pa.Array, pa.DataType], pa.Array]
"""The array as that type. Raises Misfit."""


def fitting(column: pa.Array, type: pa.DataType, conform: Conform) -> tuple[pa.Array, dict[int, Any]]:
    """The column as ``type``, with nulls where a value does not fit; and those values by row, in what JSON has.

    A struct keeps the members that fit; the others are rescued. A list or map fits completely or not at all.
    """
    try:
        return conform(column, type), {}
    except Misfit:
        pass
    is_struct = types.is_struct(type) and types.is_struct(column.type)
    found = _fitting_struct(column, type, conform) if is_struct else None
    if found is not None:
        return found
    if len(column) <= 1 or not (is_struct or _may_fit(column.type, type)):
        return pa.nulls(len(column), type), dict(values_of(column))
    masked = _masked(column, type, conform)
    if masked is not None:
        return masked
    half = len(column) // 2
    left, rest = fitting(column[:half], type, conform)
    right, more = fitting(column[half:], type, conform)
    return pa.concat_arrays([left, right]), {**rest, **{half + row: value for row, value in more.items()}}


def _masked(column: pa.Array, type: pa.DataType, conform: Conform) -> tuple[pa.Array, dict[int, Any]] | None:
    """As ``fitting``, if a mask tells which values fit. Otherwise None: they must be found by halves."""
    fits = fit_mask(column, type)
    if fits is None:
        return None
    from pyarrow import compute as pc  # not above: its import takes 50 ms

    try:
        array = conform(pc.if_else(fits, column, pa.scalar(None, column.type)), type)
    except (Misfit, pa.ArrowException):
        return None
    return array, _rows_of(column, pc.indices_nonzero(pc.invert(fits)))


def _rows_of(column: pa.Array, rows: pa.Array) -> dict[int, Any]:
    """The values of these rows."""
    numbers = rows.to_pylist()
    return {numbers[at]: value for at, value in values_of(column.take(rows))}


def values_of(column: pa.Array) -> Iterator[tuple[int, Any]]:
    """The rows that have a value, and the value in what JSON has."""
    if column.null_count == len(column):
        return
    try:
        values = column.to_pylist(**_maps_of(column.type))
    except Exception:  # Python lacks one of the values, or a map repeats a key
        values = [_odd_value(column[row : row + 1]) for row in range(len(column))]
    for row, value in enumerate(values):
        if value is not None:
            yield row, plain(value)


def _odd_value(one: pa.Array) -> Any:
    """The value in an array of one, in the first form that it has: Python's, text, bytes."""
    forms = (
        lambda: one.to_pylist(**_maps_of(one.type)),
        one.to_pylist,
        lambda: one.cast(pa.string()).to_pylist(),
        lambda: one.cast(pa.binary()).to_pylist(),
    )
    for form in forms:
        with suppress(Exception):
            return form()[0]
    return one.to_string()


def _maps_of(type: pa.DataType) -> dict[str, Any]:
    """How to take maps as dicts. Without maps not asked for: pyarrow 15 does not know it."""
    return {"maps_as_pydicts": "strict"} if "map<" in str(type) else {}


def _may_fit(found: pa.DataType, type: pa.DataType) -> bool:
    """Whether some value of the one type may fit the other one."""
    try:
        conform_array(pa.array([], found), type)
    except (Misfit, pa.ArrowException, ValueError):
        return False
    return True


def _fitting_struct(column: pa.Array, type: pa.StructType, conform: Conform) -> tuple[pa.Array, dict[int, Any]] | None:
    """As ``fitting``. A struct with a member that is null and may not be is rescued in one piece. None if names repeat:
    the structs must be judged as they are."""
    from pyarrow import compute as pc  # not above: its import takes 50 ms

    names = [field.name for field in column.type]
    if len(set(names)) < len(names):
        return None
    found = dict(zip(names, column.flatten(), strict=True))
    arrays: list[pa.Array] = []
    rest: dict[int, Any] = {}
    lacking = column.is_null()
    for field in type:
        member = found.pop(field.name, None)
        if member is None:
            member = pa.nulls(len(column))
        array, lost = fitting(member, field.type, conform)
        if not field.nullable and array.null_count:
            lacking = pc.or_(lacking, array.is_null())
        arrays.append(array)
        for row, value in lost.items():
            rest.setdefault(row, {})[field.name] = value
    for name, member in found.items():
        for row, value in values_of(member):
            rest.setdefault(row, {})[name] = value
    rest.update(_rows_of(column, pc.indices_nonzero(pc.and_(lacking, column.is_valid()))))
    mask = lacking if pc.any(lacking).as_py() else None  # not true_count: with pyarrow 15 a crash
    return pa.StructArray.from_arrays(arrays, fields=list(type), mask=mask), rest
