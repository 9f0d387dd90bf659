"""Text as a column: turns a block of lines into an Arrow array without a Python object per line."""

import numpy as np
import pyarrow as pa

NEWLINE = 0x0A

MOST_BYTES = 1 << 30
"""Size of a block that is read at once: offsets of an Arrow string have 31 bits."""

# Bytes of a line above which copying line by line is faster than byte by byte.
_LONG_LINES = 32


def lines_of(text: bytes) -> pa.StringArray:
    """The lines of a UTF-8 text, separated by newlines. At most ``MOST_BYTES``."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == NEWLINE)
    offsets = np.zeros(len(ends) + 2, np.int32)
    offsets[1:-1] = ends - np.arange(len(ends))
    offsets[-1] = len(text) - len(ends)
    many = len(ends) * _LONG_LINES > len(text)
    values = text.translate(None, b"\n") if many else text.replace(b"\n", b"")
    return pa.StringArray.from_buffers(len(ends) + 1, pa.py_buffer(offsets), pa.py_buffer(values))
