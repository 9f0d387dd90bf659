"""Which values of a column fit a type, found in a few passes over the column: a guess, for a check that follows."""

import numpy as np
import pyarrow as pa
from pyarrow import types

from cython_core.arrow.lossless_cast import decoded


def fit_mask(column: pa.Array, type: pa.DataType) -> pa.BooleanArray | None:
    """Whether each value is the same after a cast to ``type`` and back; nulls are. None if Arrow cannot tell.

    It does not judge whether types are of one family, which a cast of the masked column does. Nested values
    fit as a whole.
    """
    try:
        return _mask(column, type)
    except (pa.ArrowException, ValueError, TypeError):
        return None


def _mask(column: pa.Array, type: pa.DataType) -> pa.BooleanArray | None:
    from pyarrow import compute as pc  # not above: its import takes 50 ms

    if types.is_dictionary(column.type):
        column = decoded(column)
    if types.is_list(type) and (types.is_list(column.type) or types.is_large_list(column.type)):
        return _mask_of_items(column, [(column.values, type.value_type, type.value_field.nullable)])
    if types.is_map(type) and types.is_map(column.type):
        parts = [(column.keys, type.key_type, False), (column.items, type.item_type, type.item_field.nullable)]
        return _mask_of_items(column, parts)
    if types.is_struct(type) and types.is_struct(column.type):
        return _mask_of_structs(column, type)
    if types.is_nested(type) or types.is_nested(column.type):
        return None
    if _is_text(column.type) and _is_text(type):
        return pa.array([_is_utf8(each) for each in column.cast(pa.large_binary()).to_pylist()], pa.bool_())
    back = column.cast(type, safe=False).cast(column.type, safe=False)
    same = pc.equal(back, column)
    if types.is_floating(column.type):
        same = pc.or_(same, pc.and_(pc.is_nan(back), pc.is_nan(column)))
    return pc.or_kleene(same, column.is_null())


def _mask_of_structs(column: pa.StructArray, type: pa.StructType) -> pa.BooleanArray | None:
    if [field.name for field in column.type] != [field.name for field in type]:
        return None
    bad = np.zeros(len(column), bool)
    for member, field in zip(column.flatten(), type, strict=True):
        fits = _mask(member, field.type)
        if fits is None:
            return None
        bad |= ~np.asarray(fits)
        if not field.nullable:
            bad |= np.asarray(member.is_null())
    return pa.array(~bad | np.asarray(column.is_null()))


def _mask_of_items(column: pa.Array, parts: list[tuple[pa.Array, pa.DataType, bool]]) -> pa.BooleanArray | None:
    """The mask of lists or maps. ``parts``: their items, also of what lies beside a slice; the type that each must
    fit; and whether it may be null."""
    ends = np.asarray(column.offsets)
    begin, end = int(ends[0]), int(ends[-1])
    bad = np.zeros(end - begin, bool)
    for values, type, nullable in parts:
        items = values.slice(begin, end - begin)
        fits = _mask(items, type)
        if fits is None:
            return None
        bad |= ~np.asarray(fits)
        if not nullable:
            bad |= np.asarray(items.is_null())
    before = np.concatenate([[0], np.cumsum(bad)])[ends - begin]
    return pa.array((before[1:] == before[:-1]) | np.asarray(column.is_null()))


def _is_text(type: pa.DataType) -> bool:
    return types.is_string(type) or types.is_large_string(type)


def _is_utf8(data: bytes | None) -> bool:
    try:
        return data is None or data.decode() is not None
    except UnicodeDecodeError:
        return False
