"""Non-blocking, any thread. Casts a ready Arrow column to the type of an output field if that loses nothing.

The law: ``cast(cast(array, type), array.type) == array``, within a family of types. Families keep Arrow from parsing
text as numbers or reading naive timestamps as UTC, which a cast would do. So int64 → int32 works while the values fit,
float64 → float32 for 0.5 and not for 0.1, timestamp[ns] → [us] for whole microseconds, dictionary → its values, null →
anything.
"""

from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import types

from cython_core.arrow.value_converter import Misfit


def conform_array(array: pa.Array, type: pa.DataType, nullable: bool = True) -> pa.Array:
    """Returns ``array`` if it has ``type``, otherwise an array of ``type`` with the same values.

    Raises ``Misfit`` with the first value that does not fit, or with the array's type if none of its values could.
    """
    if not nullable and array.null_count:
        from pyarrow import compute as pc  # not above: its import takes 50 ms

        row = pc.index(array.is_null(), True).as_py()
        raise Misfit(None, type, f"it may not be null; row {row} of the batch")
    if types.is_dictionary(array.type) and array.type != type:
        # Order: first. Only its values count: the way back makes another dictionary, without unused entries.
        return conform_array(decoded(array), type, nullable)
    if types.is_nested(type) and _has_required(type) and _lacks_required(array, type):
        raise Misfit(array.type, type, "an item or field of it is null that may not be")
    if array.type == type:
        return array
    if types.is_null(array.type):
        return pa.nulls(len(array), type)
    if _family(array.type) != _family(type):
        raise Misfit(array.type, type, f"{array.type} does not become {type} by itself: cast the column in the bolt")
    fitting = _cast(array, type)
    if fitting is not None:
        return fitting
    if types.is_nested(array.type):
        # Workaround (pyarrow 26): the cast of a slice judges the children outside the slice too.
        fitting = _cast(_compact(array, 0, len(array)), type)
        if fitting is not None:
            return fitting
    # Halving finds the first culprit in a few casts.
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        if _cast(_compact(array, low, middle), type) is None:
            high = middle
        else:
            low = middle
    value = array[low] if high > low else array.type
    with suppress(AttributeError, ValueError):  # no value at all; nanoseconds, for which Python has no type
        value = value.as_py()
    reason = f"{array.type} becomes {type} only where nothing is lost: cast the column in the bolt"
    raise Misfit(value, type, f"{reason}; row {low} of the batch" if high > low else reason)


def _has_required(type: pa.DataType) -> bool:
    """Whether something inside of it may not be null. Maps are not checked."""
    if types.is_struct(type):
        return any(not field.nullable or _has_required(field.type) for field in type)
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        return not type.value_field.nullable or _has_required(type.value_type)
    return False


def _lacks_required(array: pa.Array, type: pa.DataType) -> bool:
    """Whether an item or field inside of the array is null that may not be, if its type has the same form. A cast of
    lists does not check that (pyarrow 26)."""
    if array.null_count:
        array = array.drop_null()
    if types.is_struct(type) and types.is_struct(array.type) and type.num_fields == array.type.num_fields:
        fields = [(array.field(i), type.field(i)) for i in range(type.num_fields)]
    elif types.is_struct(type) or types.is_struct(array.type) or not types.is_nested(array.type):
        return False  # refused for its family
    elif types.is_nested(type) and not types.is_map(type) and hasattr(array, "flatten"):
        fields = [(array.flatten(), type.value_field)]
    else:
        return False
    for values, field in fields:
        if not field.nullable and values.null_count:
            return True
        if types.is_nested(field.type) and _lacks_required(values, field.type):
            return True
    return False


def decoded(array: pa.Array) -> pa.Array:
    """The values of a dictionary array, one for each element."""
    values = array.dictionary
    if str(values.type) in ("string_view", "binary_view"):  # pyarrow 26 does not take from views
        values = values.cast(pa.string() if str(values.type) == "string_view" else pa.binary())
    return values.take(array.indices)


def _compact(array: pa.Array, low: int, high: int) -> pa.Array:
    """Elements ``low`` to ``high``, without the rest of the array if that could matter to a cast."""
    if types.is_nested(array.type):
        return array.take(pa.array(range(low, high), pa.int64()))
    return array.slice(low, high - low)


def _cast(array: pa.Array, type: pa.DataType) -> pa.Array | None:
    """The array as ``type``, or None if Arrow refuses or the way back does not give the same values."""
    try:
        there = array.cast(type, safe=True)
        back = there.cast(array.type, safe=True)
    except (pa.ArrowException, ValueError, TypeError):
        return None
    if back.equals(array):
        return there
    if not types.is_floating(array.type):
        return None
    from pyarrow import compute as pc

    same = pc.or_(pc.equal(back, array), pc.and_(pc.is_nan(back), pc.is_nan(array)))
    return there if pc.all(same, min_count=0).as_py() else None


def _family(type: pa.DataType) -> Any:
    if types.is_dictionary(type):
        return _family(type.value_type)
    if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type):
        return "number"
    if types.is_string(type) or types.is_large_string(type) or str(type) == "string_view":
        return "text"
    if types.is_binary(type) or types.is_large_binary(type) or str(type) == "binary_view":
        return "bytes"
    if types.is_fixed_size_binary(type):
        return "bytes"
    if types.is_timestamp(type):
        return "local time" if type.tz is None else "instant"
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        return "list", _family(type.value_type)
    if types.is_map(type):
        return "map", _family(type.key_type), _family(type.item_type)
    if types.is_struct(type):
        return ("struct", *[(field.name, _family(field.type)) for field in type])
    return {"date32[day]": "date", "date64[ms]": "date"}.get(str(type), type.id)
