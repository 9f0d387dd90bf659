"""Questions about what the tasks of a run do, asked on the driver's machine and answered by the tasks' processes.

::

    pystorm-source ui --stacks ──▶ a socket in the driver's private folder ──▶ a frame to every task's process
                          ◀── a line of JSON for each answer          ◀── its answer, over the same connection

The first line says how many were asked; the last answer ends the connection. Only this user may enter the folder.
Without questions, no thread does any work.

Threading law: everything belongs to the thread that receives reports, except ``QuestionListener.of_run`` and ``at``.
"""

import logging
import os
import selectors
import socket
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Generic, TypeVar

from pystorm_source.errors.user_frames import frames_shown
from pystorm_source.records.record_folder import make_private, private_folder, question_path
from pystorm_source.records.standstill import NOTHING, Asked, encoded

logger = logging.getLogger("pystorm.source")

# Questions at a time. Too large: memory of the driver. Too small: two pages that are refreshed take turns.
_MOST_QUESTIONS = 4
# Askers that the kernel keeps until they are accepted.
_BACKLOG = 16
# Bytes of all answers to a question. Too large: memory of the driver. Too small: on a large cluster some are left out.
_MOST_BYTES = 8 * 1024 * 1024
_PLANNER = "pystorm_source.source.driver.stream_reader"

Task = TypeVar("Task")


class QuestionListener:
    """Listens at ``path`` for questions about a run. ``topology``, ``run``: its names."""

    def __init__(self, listener: socket.socket, path: Path, topology: str, run: str):
        self.socket = listener
        self.topology = topology
        self.run = run
        self._path = path

    @classmethod
    def of_run(cls, topology: str, run: str) -> "QuestionListener | None":
        """In the private folder of the driver's JVM, this process's parent."""
        return cls.at(question_path(private_folder(os.getppid()), run), topology, run)

    @classmethod
    def at(cls, path: Path, topology: str, run: str) -> "QuestionListener | None":
        """None if it cannot listen: a path that is too long, a folder of another user."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            make_private(path.parent)
            with suppress(FileNotFoundError):
                path.unlink()  # left by a process that was killed
            listener.bind(str(path))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            logger.debug("what the tasks do cannot be asked for at %s: %s", path, error)
            listener.close()
            return None
        return cls(listener, path, topology, run)

    def close(self) -> None:
        self.socket.close()
        with suppress(OSError):
            self._path.unlink()


class _Question(Generic[Task]):
    """A question: the asker, the tasks that have not answered, the unsent part of the answer."""

    def __init__(self, asker: socket.socket, waits_for: Collection[Task]):
        self.asker = asker
        self.waits_for = set(waits_for)
        self.unsent = bytearray()
        self.bytes_left = _MOST_BYTES


class Questions(Generic[Task]):
    """``ask_all``: sends the question to every task's process; returns those that got it."""

    def __init__(self, listener: QuestionListener, selector: selectors.BaseSelector, ask_all: Callable[[], list[Task]]):
        self._listener = listener
        self._selector = selector
        self._ask_all = ask_all
        self._open: list[_Question[Task]] = []
        selector.register(listener.socket, selectors.EVENT_READ, self._accept)

    def answered(self, task: Task, answer: bytes) -> None:
        """Takes a task's answer; empty if no range is read there, or the connection is gone."""
        for question in [each for each in self._open if task in each.waits_for]:
            question.waits_for.remove(task)
            self._put(question, answer or NOTHING)

    def close(self) -> None:
        while self._open:
            self._end(self._open[0])
        self._listener.close()

    def _accept(self) -> None:
        try:
            asker, _ = self._listener.socket.accept()
        except OSError:
            return
        asker.setblocking(False)
        if len(self._open) >= _MOST_QUESTIONS:
            self._end(self._open[0])
        asked = self._ask_all()
        question = _Question(asker, asked)
        self._open.append(question)
        self._selector.register(asker, selectors.EVENT_READ, lambda: self._look(question))
        header = Asked(
            topology=self._listener.topology,
            run=self._listener.run,
            process=os.getpid(),
            asked=len(asked),
            driver=on_driver(),
        )
        self._put(question, encoded(header))

    def _put(self, question: _Question[Task], line: bytes) -> None:
        question.bytes_left -= len(line)
        if line and question.bytes_left >= 0 and b"\n" not in line:
            question.unsent += line + b"\n"
        self._look(question)

    def _look(self, question: _Question[Task]) -> None:
        """Sends what is ready, and ends the question if it is complete."""
        if question not in self._open:
            return  # ended in the same round
        try:
            self._exchange(question)
        except OSError:
            self._end(question)
            return
        if not (question.unsent or question.waits_for):
            self._end(question)
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if question.unsent else 0)
        self._selector.modify(question.asker, events, lambda: self._look(question))

    def _exchange(self, question: _Question[Task]) -> None:
        """Raises OSError if the asker is gone."""
        with suppress(BlockingIOError):
            if question.unsent:
                del question.unsent[: question.asker.send(question.unsent)]
        with suppress(BlockingIOError):
            question.asker.recv(1)  # it sends nothing: this is its end
            raise ConnectionResetError

    def _end(self, question: _Question[Task]) -> None:
        self._open.remove(question)
        with suppress(KeyError, ValueError):
            self._selector.unregister(question.asker)
        question.asker.close()


def on_driver() -> tuple[str, ...]:
    """The frames of the runner's planning thread that belong to a component or a library it calls, outermost first.
    Empty if it waits for Spark."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    frames: list[FrameType] = []
    while frame is not None and frame.f_globals.get("__name__") != _PLANNER:
        frames.append(frame)
        frame = frame.f_back
    return frames_shown(reversed(frames)) if frame is not None else ()
