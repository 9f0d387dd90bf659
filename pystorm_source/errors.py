"""Every error of this package, in one tree, by whose fault it is.

``UsageError``: the topology, an option or a call is wrong. ``WorldError``: an external system failed; a retry may help.
``TupleFailed``: user code raised for one tuple. ``InternalError``: a fault of this package.

Messages show the user's values, exceptions and tracebacks by ``given``, ``said`` and ``traced``: these cut any size,
and bear with objects that do not print.
"""

import traceback

LONGEST_MESSAGE = 4_000
"""Characters of an error's message. Less: a remedy or a list of names is cut. More: Spark sends it to the driver with
every failed attempt, and its log holds it several times."""
LONGEST_GIVEN = 500
"""Characters of one value in a message. Less: one does not see which value it was. More: it hides the remedy."""
LONGEST_TRACEBACK = 20_000
"""Characters of a traceback in a message or a line of the log. Less: frames of a deep stack are missing."""
_ROOM_FOR_WORDS = 40  # for the words that say how much is left out, so that a cut text is not cut again


def cut(text: str, most: int = LONGEST_MESSAGE) -> str:
    """The text; of a longer one its begin and its end, with the number of characters between them."""
    if len(text) <= most:
        return text
    kept = most - _ROOM_FOR_WORDS
    head, tail = kept * 3 // 4, kept // 4
    return f"{text[:head]}… ({len(text) - head - tail} characters) …{text[-tail:]}"


def given(value: object, most: int = LONGEST_GIVEN) -> str:
    """A value for a message: its repr, cut; its type if it does not print. Never raises."""
    if isinstance(value, (str, bytes)) and len(value) > most:  # the rest would be cut anyway
        kind = "characters" if isinstance(value, str) else "bytes"
        return f"{value[:most]!r}… ({len(value) - most} more {kind})"
    try:
        return cut(repr(value), most)
    except Exception:
        return f"<{type(value).__name__} that does not print>"


def said(error: BaseException, most: int = LONGEST_MESSAGE) -> str:
    """The exception's type and message, cut. Never raises: a user's exception may not print."""
    name = type(error).__name__
    try:
        return f"{name}: {cut(str(error), most)}"
    except Exception:
        return f"{name}, which does not print"


def traced(error: BaseException) -> str:
    """The exception with its traceback and causes, each line and the whole of it cut."""
    text = "".join(traceback.format_exception(error))
    return cut("\n".join(cut(line) for line in text.split("\n")), LONGEST_TRACEBACK)


class PystormError(Exception):
    """Base of all errors of this package. Its message is cut to ``LONGEST_MESSAGE`` characters, whatever was given."""

    def __init__(self, *args: object):
        super().__init__(*(cut(arg) if isinstance(arg, str) else arg for arg in args))


class UsageError(PystormError):
    """Something that the user wrote is wrong. The message names key, value and remedy."""


class TopologyError(UsageError, ValueError):
    """A topology cannot run as it is declared."""


class OptionError(UsageError, ValueError):
    """An option is unknown, has the wrong type, is out of bounds or does not fit another one."""


class SchemaError(UsageError, ValueError):
    """The schema asked for and the rows that the topology emits do not fit."""


class CheckpointError(UsageError, ValueError):
    """An offset that Spark gives back was not written by this source, or not for this topology."""


class WorldError(PystormError):
    """Something outside is missing or unreachable. Trying again may help."""


class DataLossError(WorldError):
    """Data between two offsets is gone; raised if ``failOnDataLoss`` is true."""


class TupleFailed(PystormError):
    """A component raised an exception or failed a tuple. Names component, task, values and offset."""


class InternalError(PystormError):
    """A broken promise of this package itself: please report it."""


class StormWentAwayError(WorldError):
    """pystorm's error for the end of the pipe to Storm: a name to catch, raised by nothing here."""

    def __init__(self) -> None:
        super().__init__("Got EOF while reading from Storm")
