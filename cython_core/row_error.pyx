"""What a row that does not fit its output raises."""

cdef enum:
    GIVEN_LENGTH = 500  # characters of a value that a message shows


class RowError(ValueError):
    """A row, or a column of a ready batch, does not fit the output. Nothing of it was kept.

    ``field`` is the output field's name, ``value`` the offending value (the innermost one for nested types).
    """

    def __init__(self, message, field=None, value=None):
        super().__init__(message)
        self.field = field
        self.value = value


def row_error(field, str path, type, value, str label, str reason):
    """The ``RowError`` of ``value`` at ``path`` inside ``field``, where ``type`` was wanted, in stream ``label``."""
    described = "None" if value is None else f"a value of type {value.__class__.__name__}"
    return RowError(
        f"field '{field.name}{path}' ({type}) of {label or 'this output'} can not hold {described}: {reason}. "
        f"Given: {shown(value)}",
        field.name,
        value,
    )


def shown(value):
    """``repr(value)``, cut to what a message can carry; never raises."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{value.__class__.__name__} whose repr failed with {error.__class__.__name__}>"
    return text if len(text) <= GIVEN_LENGTH else f"{text[:GIVEN_LENGTH]}… ({len(text)} characters)"
