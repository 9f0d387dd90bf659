"""When a file was born: what ``os.stat`` leaves out on Linux.

``statx`` of the C library, by ctypes, after ``struct statx`` of ``linux/stat.h`` (the same on every architecture).
"""

import ctypes
import os
import sys

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_STATX_INO = 0x100
_STATX_BTIME = 0x800
_SIZE_OF_STATX = 256
_MASK = 0
_INO = 32
_BTIME_SECONDS = 80
_BTIME_NANOSECONDS = 88


def _load() -> "ctypes._FuncPointer | None":
    if not sys.platform.startswith("linux"):
        return None
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError):  # a C library from before 2018
        return None
    statx.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    statx.restype = ctypes.c_int
    return statx


_statx = _load()


def birth_time_ns(file: str | int, inode: int) -> int | None:
    """Returns when a file (symbolic links followed) was created, in ns since 1970; renames and writes do not change it.

    ``file``: a path or a descriptor. ``inode``: the expected one, or 0 for any. None if the file system or the platform
    has no birth times, or says 0 as disk images do. Raises FileNotFoundError if the path now leads nowhere or to
    another file.
    """
    if _statx is None:
        seen = os.stat(file)
        if inode not in (0, seen.st_ino):
            raise FileNotFoundError(f"{file!r} is another file now")
        born = getattr(seen, "st_birthtime", None)
        return None if born is None else int(born * 1_000_000_000) or None
    buffer = ctypes.create_string_buffer(_SIZE_OF_STATX)
    at, path, flags = (file, b"", _AT_EMPTY_PATH) if isinstance(file, int) else (_AT_FDCWD, os.fsencode(file), 0)
    if _statx(at, path, flags, _STATX_BTIME | _STATX_INO, buffer) != 0:
        raise FileNotFoundError(f"{file!r}: {os.strerror(ctypes.get_errno())}")
    return _born(buffer.raw, file, inode)


def _born(raw: bytes, file: str | int, inode: int) -> int | None:
    """What ``struct statx`` says."""
    if inode and int.from_bytes(raw[_INO : _INO + 8], sys.byteorder) != inode:
        raise FileNotFoundError(f"{file!r} is another file now")
    if not int.from_bytes(raw[_MASK : _MASK + 4], sys.byteorder) & _STATX_BTIME:
        return None
    seconds = int.from_bytes(raw[_BTIME_SECONDS : _BTIME_SECONDS + 8], sys.byteorder, signed=True)
    nanoseconds = int.from_bytes(raw[_BTIME_NANOSECONDS : _BTIME_NANOSECONDS + 4], sys.byteorder)
    # A file that an image builder wrote has the time 0: it is no time, and every watermark would lie above it.
    return seconds * 1_000_000_000 + nanoseconds or None
