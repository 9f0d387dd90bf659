"""The lines of a failure that matter, out of the hundreds that Spark prints."""

import re
from typing import TYPE_CHECKING, Any, cast

from pystorm_source.errors import ArgumentTypeError, PystormError, TupleFailed, cut, given
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.query.operator_outages import outages_here
from pystorm_source.query.recorded import last_records
from pystorm_source.query.standing import REPLACED, is_replaced, name_of, standing, state_of
from pystorm_source.records.outages import outage_text

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryTerminatedEvent
    from pyspark.sql.streaming.query import StreamingQuery

LONGEST_OF_SPARK = 300
"""Characters of a message of Spark's. Less: its condition is cut. More: it is no line."""

_OWN = re.compile(
    r"pystorm_source\.errors\.\w+: (\[PYSTORM_[A-Z_]+\] .*?)"
    r"(?= SQLSTATE:|\n\s*SQLSTATE:|\n\s+at |\nTraceback |\n\n|\n=== |\nCaused by|\n(?:Driver|JVM) stacktrace|\Z)",
    re.DOTALL,
)
_CONDITION = re.compile(r"\[[A-Z][A-Z_0-9.]{3,}\] .*")
_INSTEAD_OF_NONE = ": query.exception() is None if it has not failed, so give the query, explain(query)"
_OF_PYTHON = re.compile(r"^(?!org\.|java|scala\.)(?:\w+\.)*(\w+(?:Error|Exception|Failed): .+)", re.MULTILINE)
"""The last line of a traceback of Python's, which Spark's messages hold somewhere within."""
_OWN_CHECKPOINT = (
    "another query runs with the same checkpointLocation, perhaps in another process: stop it, or give each query a "
    "checkpointLocation of its own. What this one has not committed is read by the other one"
)
_NO_REASON = (
    "most often a Python process of the driver was killed, by hand, or by the kernel for want of memory (`dmesg` says "
    "so). Start the query again: it goes on at its checkpoint"
)
_REMEDIES = {
    "(no cause message)": _NO_REASON,
    "terminated with exception: null": _NO_REASON,  # Spark before 4.3
    "Python worker failed to connect back": "The Python that Spark started did not answer in time, or could not start: "
    "start the job again; if it comes back, `pystorm-source check` measures that Python and names the remedy",
    "[CONCURRENT_STREAM_LOG_UPDATE]": _OWN_CHECKPOINT,
    "[CONCURRENT_QUERY]": _OWN_CHECKPOINT,
    "_SCHEMA_NOT_COMPATIBLE]": "the checkpoint has states of other fields: its first micro-batch fixes state_fields "
    "of a StatefulBolt, the fields of its key, and whether it has timers or state_ttl_secs. Give the bolt those, or "
    "the query a new checkpointLocation, which it also needs if an older pystorm-source wrote the checkpoint",
}
"""Text in a failure that is not ours → what to do about it."""
_HEADER = re.compile(r"^.*?terminated with exception: ", re.DOTALL)


class Explanation(str):
    """A text that a notebook and the interactive Python show as it is."""

    def __repr__(self) -> str:
        return str(self)


def explain(failed: "StreamingQuery | QueryTerminatedEvent | BaseException | str") -> Explanation:
    """The lines of a failure that matter: component and exception, tuple and offset, the line of code, the remedy.

    For an error of this package that no component has raised, they are its message with its code. If nothing in a
    failure is of this package, they say so, with Spark's own condition. For a query that has not failed, they say how
    far it got.

    Args:
        failed (StreamingQuery | QueryTerminatedEvent | BaseException | str): a streaming query; the event of a
            listener's ``onQueryTerminated``, or its ``exception``; an exception that a batch read has raised.

    Returns:
        Explanation: a str of up to four lines, shown as it is by a notebook.

    Raises:
        ArgumentTypeError: something else is given.

    Example:
        >>> from pystorm_source import explain, read
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Inverse(Bolt):
        ...     outputs = ["inverse double"]
        ...     def process(self, tup):
        ...         self.emit([1 / tup.values.n])
        >>> class Inverses(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[2], [0]])
        ...     inverses = Inverse.spec(inputs=[numbers])
        >>> try:
        ...     read(spark, Inverses).collect()
        ... except Exception as error:
        ...     print(explain(error))
        [PYSTORM_TUPLE_FAILED] component 'inverses', task 2: process() raised ZeroDivisionError: division by zero
          input:  tuple (0,) of numbers.default; offset 1; in partition '0' [0, 2) of spout 'numbers'
          line:   File ...
          remedy: correct the component and restart the query: ...
    """
    if isinstance(failed, TupleFailed) and failed.what:
        return Explanation(str(FailureBlock.of(failed)._replace(frames="")))
    if isinstance(failed, PystormError):
        return Explanation(str(failed))
    if isinstance(failed, (BaseException, str)):
        return _explained(str(failed))
    if hasattr(failed, "isActive"):
        return _of_query(cast("StreamingQuery", failed))
    if not hasattr(failed, "exception"):
        raise ArgumentTypeError(
            "explain takes a streaming query, a listener's event of its end, or an exception"
            f"{_INSTEAD_OF_NONE if failed is None else ''}. Given: {given(failed)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    text = failed.exception  # of a listener's event
    return Explanation("the query was stopped; it has not failed") if text is None else _explained(str(text))


def _of_query(query: "StreamingQuery") -> Explanation:
    is_active, error = state_of(query)
    if error is not None:
        return _explained(str(error))
    if is_active:
        state = "runs"
    else:
        state = REPLACED if is_replaced(query) else "was stopped, or has read all; it has not failed"
    return Explanation(f"{name_of(query)} {state}; {standing(query)}{_outages(query) if is_active else ''}")


def _outages(query: "StreamingQuery") -> str:
    """The services that fail now: the query's own, and those that all operators of this process call, because nothing
    says which operators are in the query."""
    found = [outage for run in last_records(query) for record in run.records[-1:] for outage in record.outages]
    found += outages_here()
    return "".join(f"; {outage_text(outage)}" for outage in found)


def _explained(text: str) -> Explanation:
    block = FailureBlock.found_in(text)
    if block is not None:
        return Explanation(block._replace(frames=""))
    own: Any = _OWN.search(text)
    if own is not None:
        return Explanation(own[1].strip())
    remedies = (f"\n  remedy: {remedy}" for said, remedy in _REMEDIES.items() if said in text)
    return Explanation(f"no error of pystorm-source is in it. It says: {reason_in(text)}{next(remedies, '')}")


def reason_in(text: str) -> str:
    """Returns the first of these that a text of Spark's has: our own error, complete; Python's last error; Spark's
    condition; the first line."""
    own: Any = _OWN.search(text)
    if own is not None:
        return " ".join(own[1].split())
    raised = _OF_PYTHON.findall(text) if "Traceback (most recent call last)" in text else []
    text = _HEADER.sub("", text, count=1).strip()
    condition = _CONDITION.search(text)  # py4j puts its own line before it
    said = raised[-1] if raised else condition[0] if condition is not None else text.partition("\n")[0]
    return cut(said, LONGEST_OF_SPARK)
