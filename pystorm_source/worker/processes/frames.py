"""What crosses a link: kinds of frames, and values as bytes.

    down   TUPLES      (first number, sources, values)   tuples for the task, numbered from 0 on, in order
           CANCEL      numbers                           their trees have failed: nothing that comes of them counts
           TICK, HELD  number                            the end of a micro-batch; a spout waits for what the bolt holds
           BEGIN, END  None                              a micro-batch begins; the worker is given up
    up     STARTED     (has a tick, is a batching bolt)  the bolt is initialised
           WORK        (emits, acks, fails, errors, idle, counts, lost)   an emit comes before the verdict of its anchor
           FAILED      (tuple or None, method, error)    the component's exception ends the run

``sources``: for each tuple the place of its producer's stream in a table that both processes have since the fork; one
int if all are of one. ``acks``: ranges of numbers, flat: first, last, first, last, both included. ``fails``: (number,
method, packed error or None). ``errors``: those that let the run go on. ``idle``: of all numbers below it nothing is
left to do but what the bolt holds; marks have numbers as tuples do. ``lost``: numbers that fail with another one. The
tuple of FAILED: component, stream, values; or its number.

Values are pickled by protocol 5, their large buffers beside the pickle, so that they are copied into the ring and not
first into the pickle. Only a process and its own children exchange frames; nothing that a network brings is unpickled.
"""

import pickle
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any

from cython_core.arrow.row_error import shown
from pystorm_source.errors import TopologyError, cut, said

_HEAD = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_WRITABLE = 1 << 63  # of a buffer's length: what is made of it may be changed
_BY_NAME = (pickle.PicklingError, AttributeError, TypeError)


class Kind(IntEnum):
    """Of a frame: what its bytes are."""

    TUPLES = 1
    CANCEL = 2
    TICK = 3
    BEGIN = 4
    END = 5
    HELD = 6
    WORK = 32
    FAILED = 33
    STARTED = 36


def pack(value: Any) -> list[Any]:
    """The parts of a frame that ``unpack`` makes the value of. Raises as pickle does if it cannot be pickled."""
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
    lengths = [_LENGTH.pack(view.nbytes if view.readonly else view.nbytes | _WRITABLE) for view in views]
    return [_HEAD.pack(len(views)), *lengths, *views, pickled]


def _by_value() -> Callable[..., bytes] | None:
    """``dumps`` of cloudpickle, which takes classes of ``__main__`` along: in a Python process of Spark they are not to
    be found there by name. A process that has loaded none has none of these."""
    for name in ("pyspark.cloudpickle", "cloudpickle"):
        if name in sys.modules:
            dumps: Callable[..., bytes] = sys.modules[name].dumps
            return dumps
    return None


def is_carried(value: Any) -> bool:
    """Whether ``pack`` takes it."""
    try:
        pack(value)
    except Exception:
        return False
    return True


def not_carried(values: tuple[Any, ...], error: Exception, verb: str) -> Exception:
    """What to raise for a tuple with a value that ``pack`` does not take. ``verb``: what the bolt does with it."""
    refused = next((value for value in values if not is_carried(value)), values)
    return TopologyError(
        f"a bolt with processes= {verb} its tuples by pickle, which refuses a value of type "
        f"{type(refused).__name__} ({cut(said(error), 200)}): emit what can be pickled, or leave processes= out. "
        f"Given: {shown(refused)}",
        code="PYSTORM_CANNOT_PICKLE",
    )


def unpack(frame: bytes) -> Any:
    """The value. What was writable is so again; large read-only buffers are views of the frame."""
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
        at += size
    return pickle.loads(view[at:], buffers=buffers)


def ranges_of(numbers: Iterable[int]) -> list[int]:
    """Ascending numbers as ranges: first, last, first, last."""
    found: list[int] = []
    for number in numbers:
        if found and number == found[-1] + 1:
            found[-1] = number
        else:
            found += (number, number)
    return found


def numbers_of(ranges: Sequence[int]) -> Iterator[int]:
    """The numbers in them."""
    for first, last in zip(ranges[::2], ranges[1::2], strict=True):
        yield from range(first, last + 1)
