"""Every error of this package, in one tree, by whose fault it is.

``UsageError`` is the topology's, the option's or the caller's; ``WorldError`` is the outside world's and may pass on
a retry; ``TupleFailed`` is one tuple's, raised by user code; ``InternalError`` is ours.
"""


class PystormError(Exception):
    """Base of all errors of this package."""


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
    """Data between two offsets is gone; raised where ``failOnDataLoss`` is true."""


class TupleFailed(PystormError):
    """A component raised an exception or failed a tuple. Names component, task, values and offset."""


class InternalError(PystormError):
    """A broken promise of this package itself: please report it."""


class StormWentAwayError(WorldError):
    """pystorm's error for the end of the pipe to Storm: a name to catch, raised by nothing here."""

    def __init__(self) -> None:
        super().__init__("Got EOF while reading from Storm")
