"""Whether values of a written schema fit a declared type, and what to say if they do not."""

import pyarrow as pa
from pyarrow import types

from pystorm_source.formats.lines import Malformed
from pystorm_source.types.arrow import ddl_of

WIDENED = {(pa.int32(), pa.int64()), (pa.float32(), pa.float64())}
"""(narrow, wide): each value of the first is one of the second."""


def holds(wanted: pa.DataType, given: pa.DataType) -> bool:
    """Whether each value of the scalar type ``given`` is one of ``wanted``."""
    if types.is_decimal(wanted) and types.is_decimal(given):
        whole = wanted.precision - wanted.scale >= given.precision - given.scale
        return whole and wanted.scale >= given.scale
    return wanted == given or (given, wanted) in WIDENED


def below(path: str, name: str) -> str:
    """The path of a field inside the value at ``path``."""
    return f"{path}.{name}" if path else name


def named(path: str) -> str:
    """The value at ``path`` as messages call it."""
    return f"field {path!r}" if path else "the value"


def misfit(path: str, given: str, wanted: pa.DataType, nullable: bool = True) -> Malformed:
    """For a value that was written as ``given``."""
    return Malformed(
        f"{named(path)} is {given} in the schema that it was written with, which is declared "
        f"{ddl_of(wanted)}{'' if nullable else ' not null'}"
    )


def check_names(path: str, given: dict[str, object], wanted: pa.StructType) -> None:
    """Raises Malformed if a written record has none of the declared fields, or lacks one that may not be null."""
    if wanted.num_fields and not any(field.name in given for field in wanted):
        raise Malformed(
            f"{named(path)} has none of the declared fields in the schema that it was written with, which are "
            f"{', '.join(repr(field.name) for field in wanted)}; it has {', '.join(map(repr, given))}"
        )
    for field in wanted:
        if field.name not in given and not field.nullable:
            raise Malformed(
                f"{named(below(path, field.name))} is not in the schema that it was written with, and declared "
                f"{ddl_of(field.type)} not null"
            )
