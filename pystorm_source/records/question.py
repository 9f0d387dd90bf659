"""Asks runs what their tasks do: through the sockets in the private folders of this user's drivers."""

import selectors
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pystorm_source.clock import Clock, SystemClock
from pystorm_source.records.standstill import NOTHING, Asked, RangeState, RunState, decoded

WAIT_SECONDS = 2.0
"""Time for all answers. Longer: a person waits for a process that cannot answer. Shorter: on a busy cluster some are
missing."""
MOST_BYTES = 16 * 1024 * 1024
"""Size of a run's answers. Smaller: for a large cluster some are missing."""
_CONNECT_SECONDS = 0.5
"""A runner whose thread is busy still takes the question within that time."""
_CHUNK = 256 * 1024


def ask(paths: Iterable[Path], seconds: float = WAIT_SECONDS, clock: Clock | None = None) -> tuple[RunState, ...]:
    """Returns what the tasks of the runs do, for each run whose runner answers within ``seconds``."""
    clock = clock or SystemClock()
    until = clock.monotonic() + seconds
    answers: dict[socket.socket, bytearray] = {}
    with selectors.DefaultSelector() as selector:
        try:
            for path in paths:
                asked = _asked(path, until - clock.monotonic())
                if asked is not None:
                    answers[asked] = bytearray()
                    selector.register(asked, selectors.EVENT_READ)
            while selector.get_map() and (left := until - clock.monotonic()) > 0:
                for key, _ in selector.select(left):
                    if not _read(key.fileobj, answers[key.fileobj]):  # type: ignore[arg-type,index]
                        selector.unregister(key.fileobj)
        finally:
            for each in answers:
                each.close()
    return tuple(run for run in map(run_of, answers.values()) if run is not None)


def _asked(path: Path, seconds: float) -> socket.socket | None:
    """None if nothing listens there, because its runner was killed, or takes the question within that time."""
    if seconds <= 0:
        return None
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    asked.settimeout(min(_CONNECT_SECONDS, seconds))
    try:
        asked.connect(str(path))
        asked.setblocking(False)
    except OSError:
        asked.close()
        return None
    return asked


def _read(asked: socket.socket, answer: bytearray) -> bool:
    """Whether more may arrive."""
    with suppress(BlockingIOError):
        try:
            data = asked.recv(_CHUNK)
        except ConnectionError:
            return False
        answer += data
        return bool(data) and len(answer) < MOST_BYTES
    return True


def run_of(answer: bytearray) -> RunState | None:
    """What the bytes of an answer say; None if they do not begin as a runner begins."""
    head, *lines = bytes(answer).split(b"\n")[:-1] or [b""]  # after the last newline: a line that was cut off
    asked = decoded(head)
    if not isinstance(asked, Asked):
        return None
    found = [decoded(line) for line in lines if line != NOTHING]
    ranges = tuple(each for each in found if isinstance(each, RangeState))
    missing = max(0, asked.asked - len(lines))
    return RunState(asked=asked, ranges=ranges, missing=missing, unreadable=len(found) - len(ranges))
