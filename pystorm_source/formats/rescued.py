"""The rescued column: a row's undeclared columns and misfitting values, as a JSON object. Null if all values fit."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import pyarrow as pa
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.types.json_values import utf8_json, well_formed

NEEDED_PYARROW = 20
"""Older ones cast lists of structs, and show maps, in another way; 15 crashes."""
FILE_PATH = "_file_path"
"""Key of the file's path in the object, as Auto Loader calls it. If the row itself has that key, it keeps it."""


RescuedColumn = Annotated[
    str,
    Meta(
        description="Name of the last field, a string that spec(rescued=...) adds. It gets what the other fields "
        "cannot hold, as JSON. Empty: none."
    ),
]
"""The option ``rescuedDataColumn``, as Auto Loader calls it."""


def is_rescued(name: str, fields: Sequence[str], types: Sequence[str | None]) -> bool:
    """Whether the option names a field. Raises OptionError unless that is the last one, and a string."""
    if name and int(pa.__version__.partition(".")[0]) < NEEDED_PYARROW:
        raise OptionError(
            f"option 'rescuedDataColumn' needs pyarrow {NEEDED_PYARROW} or newer: run pip install "
            f"'pyarrow>={NEEDED_PYARROW}' on the driver and every executor. Given: pyarrow {pa.__version__}",
            code="PYSTORM_INVALID_OPTION",
        )
    last = f"{fields[-1]} {types[-1] or 'string'}" if fields else ""
    if name and last != f"{name} string":
        raise OptionError(
            f"option 'rescuedDataColumn' names the last field, a string that may be null: end the fields with "
            f"'{name} string', or use spec(rescued={name!r}), which adds it. Given: {', '.join(fields)}; the last is "
            f"{last!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    return bool(name)


def fields_with(rescued: str, outputs: Any, given_by: str) -> list[str]:
    """The fields that ``outputs`` declares, and the rescued one. Raises OptionError if it declares Streams."""
    declared = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    if not all(isinstance(each, str) for each in declared):
        raise OptionError(
            f"spec(rescued={rescued!r}) adds the field to a list of fields, and {given_by} declares Streams: end the "
            f"fields of its default one with '{rescued} string', and set config={{'rescuedDataColumn': {rescued!r}}} "
            f"instead. Given: {outputs!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    return [*declared, f"{rescued} string"]


def rescued_text(rest: Mapping[str, Any], path: str) -> str | None:
    """The value of the column. ``rest``: by key, in what msgspec encodes; ``path``: of the file, "" without one."""
    if not rest:
        return None
    return utf8_json({FILE_PATH: well_formed(path), **rest} if path else rest).decode()


def with_rescued(
    columns: Sequence[pa.Array], count: int, schema: pa.Schema | None, texts: pa.Array | None = None
) -> pa.RecordBatch:
    """The batch of these columns of ``count`` rows and the rescued one, the last. ``texts``: None if all rows fit."""
    last = pa.nulls(count, pa.string()) if texts is None else texts
    return pa.RecordBatch.from_arrays([*columns, last], schema=schema)


def names_of(columns: Sequence[str], fields: Collection[str]) -> list[str]:
    """Different keys for columns: their names; for one whose name an earlier one has, ``_c3`` if it is the fourth."""
    taken = {*columns, *fields}
    return [name if name not in columns[:at] else name_by_position(at, taken) for at, name in enumerate(columns)]


def name_by_position(at: int, taken: Collection[str]) -> str:
    """Spark's name for the column of a value without one: ``_c3`` for the fourth. Ends with underscores if that is
    ``taken``."""
    key = f"_c{at}"
    while key in taken:
        key += "_"
    return key
