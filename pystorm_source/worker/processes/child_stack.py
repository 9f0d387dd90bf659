"""The current stack of a child's bolt: requested by a signal, answered through a pipe.

    parent: ask ─► SIGURG ─► faulthandler, in the child's main thread, writes the stack ─► pipe ─► read, for a while

The child needs neither a turn nor the interpreter's lock to answer, so a child that hangs in compiled code also
answers; a stopped one does not. The signal is SIGURG, because a process without a handler ignores it: if the bolt has
taken the signal from faulthandler, the question gets no answer and does no harm.
"""

import contextlib
import faulthandler
import os
import re
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator

from pystorm_source.errors import one_line
from pystorm_source.errors.user_frames import line_shown

SIGNAL = getattr(signal, "SIGURG", None)  # None: Windows, where there are no children

ANSWER_SECONDS = 0.2
"""Time until the first line. Longer: `stacks` waits for a stopped child. Shorter: a child without a free core looks
stopped."""
REST_SECONDS = 0.02
"""Time between two pieces of an answer, which has no end mark. Shorter: a long stack is cut off."""
MOST_FRAMES = 20
"""The innermost frames to show. More: the text is too long to read. Fewer: the user's own line is missing."""

STUCK_STATUS = 75
"""Exit status of a child that ``end_with_stack`` has ended: EX_TEMPFAIL, as it is worth another try."""

_TUPLE = "tuple:"
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_RUNS = os.path.join("worker", "processes", "child_tasks.py")
_OURS = (f"{os.sep}pystorm_source{os.sep}worker{os.sep}", f"{os.sep}pystorm_source{os.sep}api{os.sep}")


def end_with_stack(stack: "ChildStack", tup: str) -> None:
    """In the child, from any thread: ends the process at once, and leaves its main thread's stack in the pipe, and the
    tuple, as text."""
    stack.leave(tup)
    main = threading.main_thread().ident
    if SIGNAL is not None and main is not None:
        signal.pthread_kill(main, SIGNAL)
        time.sleep(ANSWER_SECONDS)  # the handler runs in the other thread, and nothing tells of its end
    os._exit(STUCK_STATUS)


class ChildStack:
    """A pipe for one child, made before the fork. ``there_fd``: the child's end.

    Threading law: ``answer`` is the child's; ``ask`` is for any thread of the parent.
    """

    def __init__(self) -> None:
        self._own_fd, self.there_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._asking = threading.Lock()

    def answer(self) -> None:
        """In the child, once: answers from now on."""
        if SIGNAL is not None:
            faulthandler.register(SIGNAL, file=self.there_fd, all_threads=False)

    def ask(self, send: Callable[[int], None]) -> tuple[str, ...] | None:
        """Blocking, for at most a fifth of a second. ``send``: signals the child. The frames below the engine's,
        outermost first, such as ``bolts.py:12 in process: 1 / n``; empty outside of calls; None without an answer."""
        with self._asking:
            if SIGNAL is None or self._own_fd < 0:
                return None
            self._read()  # an answer that came too late
            send(SIGNAL)
            text, seconds = b"", ANSWER_SECONDS
            while self._comes(seconds) and (piece := self._read()):  # empty: the child has ended
                text, seconds = text + piece, REST_SECONDS
        return tuple(_frames(text.decode(errors="replace"))) if text else None

    def leave(self, tup: str) -> None:
        """In the child: writes the tuple, as text, without a question."""
        with contextlib.suppress(BlockingIOError):
            os.write(self.there_fd, f"{_TUPLE}{one_line(tup)}\n".encode())

    def left(self) -> tuple[str, tuple[str, ...]]:
        """The tuple and the frames that the child has written before its end; empty if it has not."""
        with self._asking:
            text = self._read().decode(errors="replace") if self._own_fd >= 0 else ""
        found = [line.removeprefix(_TUPLE) for line in text.splitlines() if line.startswith(_TUPLE)]
        return "".join(found[-1:]), tuple(_frames(text))

    def _comes(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._own_fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def _read(self) -> bytes:
        with contextlib.suppress(BlockingIOError):
            return os.read(self._own_fd, 1 << 16)
        return b""

    def forked(self) -> None:
        """In the parent, after the fork: only the child keeps its end."""
        os.close(self.there_fd)

    def close(self) -> None:
        """Takes no more questions."""
        with self._asking:
            if self._own_fd >= 0:
                os.close(self._own_fd)
            self._own_fd = -1


def _frames(text: str) -> Iterator[str]:
    """The frames, outermost first, without those above the child's tasks: these are the parent's stack at the fork."""
    found: list[tuple[str, int, str]] = []
    for line in text.splitlines():
        if frame := _FRAME.match(line):
            file, number, function = frame.groups()
            if file.endswith(_RUNS):
                break
            if not any(each in file for each in _OURS):
                found.append((file, int(number), function))
    for frame_of in found[:MOST_FRAMES][::-1]:
        yield line_shown(*frame_of)
