"""Whole lines of a byte range, block by block.

    lines     aaaaaa↵   bbbbbb↵   cccccc↵   dddddd↵
    range      [ start ─────────────────── end )        gives bbbbbb, cccccc, dddddd: their first bytes lie in it
              ▲ start - 1 is looked at: if it is a newline, a line begins at start

So ranges that meet share no line and leave none out, wherever they are cut. A block is some whole lines and the
offset of the first; memory is bounded by a block and the longest line.
"""

from collections.abc import Callable, Iterator

from pystorm_source.errors import DataLossError

BLOCK = 1 << 20
_SMALL = 1 << 14


def plain_blocks(read: Callable[[int, int], bytes], start: int, end: int, path: str) -> Iterator[tuple[bytes, int]]:
    """(lines, offset of the first) of the lines that begin in [start, end). Each block ends with a newline, except
    perhaps the last of the file. ``read(count, position)``: the text. Raises DataLossError where it ends early.
    """
    if start >= end:
        return
    at = max(0, start - 1)
    base = start
    parts: list[bytes] = []
    held = 0
    skipping = start > 0
    while True:
        data = read(max(_SMALL, min(BLOCK, end - at + _SMALL)), at)
        if not data:
            break
        at += len(data)
        if skipping:
            cut = data.find(b"\n") + 1
            if cut == 0 and at < end:
                continue
            base = at - len(data) + cut
            if cut == 0 or base >= end:
                return
            skipping = False
            data = data[cut:]
        if at >= end:
            # The last line of the range is the one with byte end - 1.
            begin = base + held
            last = data.find(b"\n", max(0, end - 1 - begin)) + 1
            if last:
                parts.append(data[:last])
                yield b"".join(parts), base
                return
        cut = data.rfind(b"\n") + 1
        if cut:
            parts.append(data[:cut])
            lines = b"".join(parts)
            yield lines, base
            base += len(lines)
            data = data[cut:]
            parts, held = [], 0
        if data:
            parts.append(data)
            held += len(data)
    if at < end:
        raise DataLossError(
            f"{path!r} ends at offset {at}, but was planned to be read up to {end}: it was truncated after that. Let "
            f"rotation rename files (logrotate: create instead of copytruncate), or set failOnDataLoss=false. Given: "
            f"[{start}, {end})",
            code="PYSTORM_DATA_LOST",
        )
    if parts:
        yield b"".join(parts), base
