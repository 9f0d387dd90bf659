"""Whole lines of gzip members, block by block."""

import zlib
from collections.abc import Iterator

from pystorm_source.errors import WorldError
from pystorm_source.spouts.blocks.line_blocks import BLOCK
from pystorm_source.spouts.files.identity.gzip_members import GzipReader


def gzip_blocks(fd: int, start: int, end: int, path: str, skip: int = 0) -> Iterator[tuple[bytes, int]]:
    """(lines, offset) of the gzip members in [start, end); offsets are positions in the compressed file, below ``end``,
    the same for all lines of a block. ``skip``: bytes of text that are left out first. Raises WorldError for one that
    is cut off or no gzip.
    """
    if start >= end:
        return
    reader = GzipReader(fd, start, end, BLOCK)
    parts: list[bytes] = []
    offset = start
    while True:
        offset = min(max(offset, reader.at), end - 1)
        try:
            data = reader.next_block()
        except (EOFError, zlib.error) as error:
            raise WorldError(
                f"{path!r} is no whole gzip file ({error} at offset {reader.at}): repair or remove it; "
                f"files.malformed=skip takes what can be unpacked. Given: [{start}, {end})",
                code="PYSTORM_FILE_UNREADABLE",
            ) from error
        if not data:
            break
        if skip:
            skip, data = max(0, skip - len(data)), data[skip:]
        cut = data.rfind(b"\n") + 1
        if cut:
            parts.append(data[:cut])
            yield b"".join(parts), offset
            parts = []
            data = data[cut:]
        if data:
            parts.append(data)
    if parts:
        yield b"".join(parts), offset
