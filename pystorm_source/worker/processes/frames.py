"""What is sent over a link: kinds of frames, and values as bytes.

    down   TUPLES      (first number, sources, values)   tuples for the task, numbered from 0 on, in order
           BATCH       (number, source, batch)           rows in columns, as one tuple that has the numbers of all
           CANCEL      numbers                           their trees have failed: their results do not count
           KEYS        (first number, keys, refused)     of the tuples that follow, for ``idempotency_key``
           TICK, HELD  number                            the end of a micro-batch; a spout waits for tuples in the bolt
           LEASE       a PermitPlace, or None            where permits come from; None: from the process itself
           BEGIN, END  None                              a micro-batch begins; the worker ends
    up     STARTED     (has a tick, is a batching bolt)  the bolt is initialised
           WORK        (emits, acks, fails, errors, idle, counts, lost)   an emit comes before the verdict of its anchor
           FAILED      (tuple or None, method, error)    the component's exception ends the run

``sources``: for each tuple the place of its producer's stream in a table that both processes have since the fork; one
int if all have the same. ``emits``: (stream of all or of each, numbers of the anchors, values), columns; an anchor is
an int, several are a tuple; values are a tuple or a batch. ``acks``: ranges of numbers, flat: first, last, first, last,
both included. ``fails``: (number, method, packed error or None, rows); ``rows``: of a batch that has failed in part.
``errors``: exceptions that let the run go on. ``idle``: all work below this number is done, except for tuples kept in
the bolt; marks have numbers like tuples. ``lost``: numbers of tuples that fail with another one. The tuple of FAILED:
component, stream, values; or its number.

Values are pickled by protocol 5, with large buffers outside the pickle: these are copied into the ring, not first into
the pickle. Only a process and its own children exchange frames; nothing from a network is unpickled.
"""

import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from cython_core.arrow.row_error import shown
from cython_core.links.frame_kinds import Kind as Kind
from cython_core.links.link_end import LargeFrame
from pystorm_source.errors import TopologyError, cut, said

# Order: all of eight bytes, to align the buffers after them as Arrow requires.
_HEAD = struct.Struct("<Q")
_LENGTH = struct.Struct("<Q")
_PADDING = [bytes(-size % 8) for size in range(8)]
_WRITABLE = 1 << 63  # in a buffer's length: the result must be writable
_BY_NAME = (pickle.PicklingError, AttributeError, TypeError)


def pack(value: Any) -> list[Any]:
    """The parts of a frame that ``unpack`` turns back into the value. Raises as pickle does if it cannot be pickled."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        pickled = pickle.dumps(value, 5, buffer_callback=buffers.append)
    except _BY_NAME:
        by_value = _by_value()
        if by_value is None:
            raise
        buffers.clear()
        pickled = by_value(value, 5, buffers.append)
    if not buffers:
        return [_HEAD.pack(0), pickled]
    views = [buffer.raw() for buffer in buffers]
    lengths = [_LENGTH.pack(view.nbytes | (0 if _is_fixed(view) else _WRITABLE)) for view in views]
    padded = [part for view in views for part in (view, _PADDING[view.nbytes % 8])]
    return [_HEAD.pack(len(views)), *lengths, *padded, pickled]


def _is_fixed(view: memoryview) -> bool:
    """Whether it never changes: an Arrow array does not, even in writable memory."""
    return view.readonly or isinstance(view.obj, pa.Buffer)


def _by_value() -> Callable[..., bytes] | None:
    """``dumps`` of cloudpickle, which includes classes of ``__main__``, because a Python process of Spark does not find
    them by name. A process without such classes has not loaded it."""
    for name in ("pyspark.cloudpickle", "cloudpickle"):
        if name in sys.modules:
            dumps: Callable[..., bytes] = sys.modules[name].dumps
            return dumps
    return None


def is_carried(value: Any) -> bool:
    """Whether ``pack`` accepts it."""
    try:
        pack(value)
    except Exception:
        return False
    return True


def not_carried(values: tuple[Any, ...], error: Exception, verb: str) -> Exception:
    """The error for a tuple with a value that ``pack`` refuses. ``verb``: what the bolt does with it."""
    refused = next((value for value in values if not is_carried(value)), values)
    return TopologyError(
        f"a bolt with processes= {verb} its tuples by pickle, which refuses a value of type "
        f"{type(refused).__name__} ({cut(said(error), 200)}): emit what can be pickled, or leave processes= out. "
        f"Given: {shown(refused)}",
        code="PYSTORM_CANNOT_PICKLE",
    )


def unpack(frame: bytes | LargeFrame) -> Any:
    """The value. Writable buffers are writable again; large read-only buffers are views of the frame."""
    (count,) = _HEAD.unpack_from(frame)
    at = _HEAD.size
    if count == 0:
        return pickle.loads(memoryview(frame)[at:])
    lengths = [_LENGTH.unpack_from(frame, at + i * _LENGTH.size)[0] for i in range(count)]
    at += count * _LENGTH.size
    view, buffers = memoryview(frame), []
    for length in lengths:
        size = length & ~_WRITABLE
        part = view[at : at + size]
        buffers.append(bytearray(part) if length & _WRITABLE else part)
        at += size + len(_PADDING[size % 8])
    return pickle.loads(view[at:], buffers=buffers)
