"""The error of a row that does not fit its output, and the values that errors of the core show."""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

_E = TypeVar("_E", bound=BaseException)

GIVEN_LENGTH = 500  # characters of a value that a message shows
ROW_LENGTH = 200  # and of the row that it belongs to


class RowError(ValueError):
    """A row, or a column of a ready batch, does not fit the output. No part of it was kept.

    ``field`` is the output field's name, ``value`` the offending value (the innermost one for nested types), ``row``
    the values of the row as they were emitted; each may be None.
    """

    code = "PYSTORM_VALUE_DOES_NOT_FIT"

    def __init__(self, message: str, field: str | None = None, value: Any = None, row: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.row = row


def row_error(
    field: "pa.Field",
    path: str,
    type: "pa.DataType",
    value: Any,
    label: str,
    reason: str,
    row: Any = None,
    offset: int = -1,
) -> RowError:
    """The ``RowError`` of ``value`` at ``path`` inside ``field``, where ``type`` was wanted, in stream ``label``."""
    described = "None" if value is None else f"a value of type {value.__class__.__name__}"
    where = "" if row is None else f"; row {shown(row, ROW_LENGTH)}"
    if offset >= 0:
        where += f", offset {offset}"
    return RowError(
        f"field '{field.name}{path}' ({type}) of {label or 'this output'} can not hold {described}: {reason}{where}. "
        f"Given: {shown(value)}",
        field.name,
        value,
        row,
    )


def coded(kind: type[_E], code: str, message: str) -> _E:
    """A built-in exception with a code of docs/ERRORS.md, for the test kit and users to identify it."""
    error = kind(message)
    error.code = code  # type: ignore[attr-defined]
    return error


def shown(value: Any, length: int = GIVEN_LENGTH) -> str:
    """``repr(value)``, cut to what a message can carry; never raises.

    Text is cut before it is printed: what is left out may be large.
    """
    if type(value) in (str, bytes) and len(value) > length:
        whole = len(value)
        return f"{repr(value[:length])[:length]}… ({whole} {'bytes' if type(value) is bytes else 'characters'})"
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{value.__class__.__name__} whose repr failed with {error.__class__.__name__}>"
    return text if len(text) <= length else f"{text[:length]}… ({len(text)} characters)"
