"""Every error of this package, in one tree, by whose fault it is.

``UsageError``: the topology, an option or a call is wrong. ``WorldError``: an external system failed; a retry may help.
``TupleFailed``: user code raised for one tuple. ``InternalError``: a fault of this package.

Each message begins with the error's ``code`` (``conditions``).

Messages show the user's values, exceptions and tracebacks through ``given``, ``said`` and ``traced``, which cut any
size and tolerate objects that do not print.
"""

import difflib
import traceback
from collections.abc import Iterable

from pystorm_source.errors.conditions import Code

__all__ = [
    "LONGEST_GIVEN",
    "LONGEST_MESSAGE",
    "LONGEST_TRACEBACK",
    "ArgumentError",
    "ArgumentTypeError",
    "AttributeMissingError",
    "CheckpointError",
    "ComponentNotFoundError",
    "ContractBroken",
    "DataLossError",
    "InternalError",
    "MethodMissingError",
    "NotSupportedError",
    "OptionError",
    "PystormError",
    "SchemaError",
    "StormWentAwayError",
    "StreamNotDeclaredError",
    "TopologyError",
    "TopologyTimeoutError",
    "TupleFailed",
    "UsageError",
    "WorldError",
    "cut",
    "given",
    "nearest",
    "one_line",
    "said",
    "traced",
]

LONGEST_MESSAGE = 4_000
"""Characters of an error's message. Less: a remedy or a list of names is cut. More: Spark sends it to the driver with
every failed attempt, and its log holds it several times."""
LONGEST_GIVEN = 500
"""Characters of one value in a message. Less: one does not see which value it was. More: it hides the remedy."""
LONGEST_TRACEBACK = 20_000
"""Characters of a traceback in a message or a line of the log. Less: frames of a deep stack are missing."""
_ROOM_FOR_WORDS = 40  # for the words that say how much is left out, so that a cut text is not cut again
_ROOM_FOR_CODE = 60  # in front of the message


def cut(text: str, most: int = LONGEST_MESSAGE) -> str:
    """The text; of a longer one its begin and its end, with the number of characters between them. Lone surrogates, as
    in the name of a file that is no UTF-8, become ``\\udcff``: columns, reports and Spark take UTF-8 only."""
    if not text.isascii():
        text = text.encode(errors="backslashreplace").decode()
    if len(text) <= most:
        return text
    kept = most - _ROOM_FOR_WORDS
    head, tail = kept * 3 // 4, kept // 4
    return f"{text[:head]}… ({len(text) - head - tail} characters) …{text[-tail:]}"


def one_line(text: str) -> str:
    """The first line of the text, with "…" behind it if there are more."""
    first, more, _ = text.partition("\n")
    return f"{first} …" if more else first


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
        return f"{name}: {cut(str(error), most)}{_fields_instead(error)}"
    except Exception:
        return f"{name}, which does not print"


def _fields_instead(error: BaseException) -> str:
    """Lists the tuple's fields if a missing field was asked for, as in ``tup.values.lyne``."""
    fields = getattr(error.obj, "_fields", None) if isinstance(error, AttributeError) else None
    if not isinstance(fields, tuple) or not all(isinstance(field, str) for field in fields):
        return ""
    return f"; its fields are {', '.join(fields)}{nearest(error.name, fields)}"  # type: ignore[attr-defined]


def nearest(name: object, names: Iterable[str]) -> str:
    """Returns ``: did you mean 'word'?`` for a name that is nearly one of these; otherwise empty."""
    near = difflib.get_close_matches(name, list(names), n=1) if isinstance(name, str) else []
    return f": did you mean {near[0]!r}?" if near else ""


def traced(error: BaseException) -> str:
    """Formats the exception with its traceback and causes; cuts each line and the text."""
    text = "".join(traceback.format_exception(error))
    return cut("\n".join(cut(line) for line in text.split("\n")), LONGEST_TRACEBACK)


class PystormError(Exception):
    """Base of all errors of this package: catch it to catch them all.

    The message is cut to ``LONGEST_MESSAGE`` characters.

    Args:
        *args (object): the message. Name key, value and remedy.
        code (Code): the condition, one of docs/ERRORS.md. Defaults to the class's code.

    Attributes:
        code (str): the condition that precedes the message: ``PYSTORM_UNKNOWN_OPTION``. Stable across versions, unlike
            the words of a message.
        message (str): the message without the code.

    Example:
        >>> from pystorm_source.errors import OptionError, PystormError, TupleFailed, WorldError
        >>> all(issubclass(error, PystormError) for error in (OptionError, TupleFailed, WorldError))
        True
        >>> WorldError("the broker does not answer").code
        'PYSTORM_EXTERNAL_FAILURE'
    """

    code: Code = "PYSTORM_ERROR"

    def __init__(self, *args: object, code: Code | None = None):
        super().__init__(*(cut(arg, LONGEST_MESSAGE - _ROOM_FOR_CODE) if isinstance(arg, str) else arg for arg in args))
        if code is not None:
            self.code = code  # in __dict__, which is pickled

    @property
    def message(self) -> str:
        return BaseException.__str__(self)  # not a KeyError's, which shows the repr

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"


class UsageError(PystormError):
    """Something that the user wrote is wrong; no retry helps. The message names key, value and remedy.

    Example:
        >>> from pystorm_source.errors import UsageError
        >>> from pystorm_source.testing import run_topology
        >>> try:
        ...     run_topology(Topology)
        ... except UsageError as error:
        ...     print(type(error).__name__)
        TopologyError
    """

    code: Code = "PYSTORM_ERROR"


class TopologyError(UsageError, ValueError):
    """A topology cannot run as declared. Also a ValueError.

    Example:
        >>> class Nothing(PartitionedSpout):
        ...     outputs = ["n long"]
        >>> Nothing.gives_batches()
        Traceback (most recent call last):
        pystorm_source.errors.TopologyError: [PYSTORM_INVALID_COMPONENT] a PartitionedSpout defines exactly one of ...
    """

    code: Code = "PYSTORM_INVALID_TOPOLOGY"


class OptionError(UsageError, ValueError):
    """An option is unknown, has the wrong type, is out of bounds or does not fit another one. Also a ValueError.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        >>> run_topology(Numbers, {"topology.max.spout.pending": 0})
        Traceback (most recent call last):
        pystorm_source.errors.OptionError: [PYSTORM_INVALID_OPTION] option 'topology.max.spout.pending': ...
    """

    code: Code = "PYSTORM_INVALID_OPTION"


class ArgumentError(UsageError, ValueError):
    """An argument of a call has a value that makes no sense. Also a ValueError.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        >>> run_topology(Numbers, errors="ignore")
        Traceback (most recent call last):
        pystorm_source.errors.ArgumentError: [PYSTORM_INVALID_ARGUMENT] errors is 'raise' or 'collect'. Given: 'ignore'
    """

    code: Code = "PYSTORM_INVALID_ARGUMENT"


class ArgumentTypeError(UsageError, TypeError):
    """An argument of a call or a declaration has another type than it must have. Also a TypeError.

    Example:
        >>> Stream("word string")
        Traceback (most recent call last):
        pystorm_source.errors.ArgumentTypeError: [PYSTORM_INVALID_ARGUMENT] Stream fields must be a list...
    """

    code: Code = "PYSTORM_INVALID_ARGUMENT"


class NotSupportedError(UsageError, NotImplementedError):
    """A name of streamparse's that can be imported and cannot work here. Also a NotImplementedError.

    Example:
        >>> Grouping.custom_object("jobs.Nearest")
        Traceback (most recent call last):
        pystorm_source.errors.NotSupportedError: [PYSTORM_NOT_SUPPORTED] no Java runs here: ...
    """

    code: Code = "PYSTORM_NOT_SUPPORTED"


class MethodMissingError(UsageError, NotImplementedError):
    """A method was called that the subclass has to define. Also a NotImplementedError.

    Example:
        >>> class Lazy(Bolt):
        ...     outputs = ["word string"]
        >>> Lazy().process(None)
        Traceback (most recent call last):
        pystorm_source.errors.MethodMissingError: [PYSTORM_INVALID_COMPONENT] Lazy must define process(tup)
    """

    code: Code = "PYSTORM_INVALID_COMPONENT"


class AttributeMissingError(UsageError, AttributeError):
    """An attribute of streamparse's that is not here. Also an AttributeError, so that ``hasattr`` says no.

    Example:
        >>> class Numbers(Topology):
        ...     pass
        >>> Numbers.thrift_spouts
        Traceback (most recent call last):
        pystorm_source.errors.AttributeMissingError: [PYSTORM_NOT_SUPPORTED] no Thrift structures are made here: ...
    """

    code: Code = "PYSTORM_NOT_SUPPORTED"


class StreamNotDeclaredError(UsageError, KeyError):
    """A stream was asked for by a name that no component declares. Also a KeyError.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> MemorySpout.spec(name="numbers", fields=["n long"], rows=[[1]])["odd"]
        Traceback (most recent call last):
        pystorm_source.errors.StreamNotDeclaredError: [PYSTORM_INVALID_ARGUMENT] 'numbers' declares ...
    """

    code: Code = "PYSTORM_INVALID_ARGUMENT"


class ComponentNotFoundError(UsageError, KeyError):
    """A component was asked for by a name that the topology does not have. Also a KeyError.

    Example:
        >>> from pystorm_source.records.record import ComponentProgress, TopologyProgress
        >>> TopologyProgress(components=(ComponentProgress(name="price"),)).component("prise")
        Traceback (most recent call last):
        pystorm_source.errors.ComponentNotFoundError: [PYSTORM_INVALID_ARGUMENT] the topology has ...
    """

    code: Code = "PYSTORM_INVALID_ARGUMENT"


class TopologyTimeoutError(UsageError, TimeoutError):
    """``run_topology`` has taken longer than its ``timeout``. Also a TimeoutError.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Again(Bolt):
        ...     outputs = ["n long"]
        ...     def process(self, tup):
        ...         while True:
        ...             self.n = tup.values.n
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        ...     again = Again.spec(inputs=[numbers])
        >>> run_topology(Numbers, timeout=0.5)
        Traceback (most recent call last):
        pystorm_source.errors.TopologyTimeoutError: [PYSTORM_TOPOLOGY_DOES_NOT_END] topology 'Numbers' did not ...
    """

    code: Code = "PYSTORM_TOPOLOGY_DOES_NOT_END"


class SchemaError(UsageError, ValueError):
    """The schema asked for and the rows that the topology emits do not fit. Also a ValueError.

    Example:
        >>> from pystorm_source import read
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1]])
        >>> read(spark, Numbers, schema="m long")
        Traceback (most recent call last):
        pystorm_source.errors.SchemaError: [PYSTORM_SCHEMA_MISMATCH] ...
    """

    code: Code = "PYSTORM_SCHEMA_MISMATCH"


class CheckpointError(UsageError, ValueError):
    """An offset in the checkpoint was not written by this source, or not for this topology. Also a ValueError.

    Example:
        >>> from pystorm_source.errors import CheckpointError, UsageError
        >>> issubclass(CheckpointError, UsageError)
        True
    """

    code: Code = "PYSTORM_CHECKPOINT_DAMAGED"


class ContractBroken(UsageError, AssertionError):
    """A spout or bolt breaks a law that the engine relies on: found by the test kit. Also an AssertionError.

    Attributes:
        component (str): name of the class.
        law (str): the law in one sentence.
        place (str): partition and offsets, or the tuple; empty if it concerns the entire component.
        expected (str): what the law asks for.
        found (str): what the component did.
        remedy (str): what to change.

    Example:
        >>> from pystorm_source.errors import ContractBroken
        >>> from pystorm_source.testing import verify_bolt
        >>> class Numbered(Bolt):
        ...     outputs = ["number long", "word string"]
        ...     count = 0
        ...     def process(self, tup):
        ...         self.count += 1
        ...         self.emit([self.count, tup.values.word])
        >>> try:
        ...     verify_bolt(Numbered, [["the"], ["cow"]], fields=["word string"])
        ... except ContractBroken as error:
        ...     print(error.law)
        a fresh instance gives the same rows
    """

    code: Code = "PYSTORM_CONTRACT_BROKEN"

    component = law = place = expected = found = remedy = ""


class WorldError(PystormError):
    """Something outside is missing or unreachable. Trying again may help. Your spouts may raise it.

    Example:
        >>> from pystorm_source.errors import WorldError
        >>> raise WorldError("the broker does not answer: start it. Given: 'broker:9092'")
        Traceback (most recent call last):
        pystorm_source.errors.WorldError: [PYSTORM_EXTERNAL_FAILURE] the broker does not answer: start it. Given: ...
    """

    code: Code = "PYSTORM_EXTERNAL_FAILURE"


class DataLossError(WorldError):
    """Data between two offsets is gone; raised if ``failOnDataLoss`` is true, the default.

    Example:
        >>> from pystorm_source.errors import DataLossError, WorldError
        >>> issubclass(DataLossError, WorldError)
        True
    """

    code: Code = "PYSTORM_DATA_LOST"


class TupleFailed(PystormError):
    """A component raised an exception or failed a tuple. Names component, task, values and offset.

    Its ``__cause__`` is the component's own exception.

    Attributes:
        component (str): its name.
        what (str): component, task, method and exception.
        place (str): the tuple, its offset and the range that was read.
        remedy (str): what to do.

    Example:
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Fragile(Bolt):
        ...     def process(self, tup):
        ...         1 / tup.values.n
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[0]])
        ...     fragile = Fragile.spec(inputs=[numbers])
        >>> run_topology(Numbers, errors="collect").errors
        [TupleFailed("component 'fragile'...ZeroDivisionError: division by zero...")]
    """

    code: Code = "PYSTORM_TUPLE_FAILED"
    component = what = place = remedy = ""


class InternalError(PystormError):
    """A broken promise of this package itself: please report it.

    Example:
        >>> from pystorm_source.errors import InternalError, UsageError
        >>> issubclass(InternalError, UsageError)
        False
    """

    code: Code = "PYSTORM_INTERNAL_ERROR"


class StormWentAwayError(WorldError):
    """pystorm's error for the end of the pipe to Storm: a name to catch, raised by nothing here.

    Example:
        >>> from pystorm_source.exceptions import StormWentAwayError
        >>> print(StormWentAwayError())
        Got EOF while reading from Storm
    """

    def __init__(self) -> None:
        super().__init__("Got EOF while reading from Storm", code="PYSTORM_EXTERNAL_FAILURE")

    def __str__(self) -> str:
        return self.message  # pystorm's own text
