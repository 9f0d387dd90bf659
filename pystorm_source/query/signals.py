"""SIGINT and SIGTERM while a job waits for its queries: counted, instead of ending the process or the JVM at once.

    Ctrl-C in a terminal ──► Python, and under spark-submit its parent, the JVM, too
    kill, a container's end ──► the first process: the JVM under spark-submit, Python otherwise

So this listens to both. The JVM would end by its shutdown hook, and with it the running micro-batch.
"""

import contextlib
import os
import select
import signal
import threading
from collections import Counter
from types import FrameType, TracebackType
from typing import Any, Self

STATUS = 128
"""Plus the number of the signal: the exit status that tells a shell that a signal ended a process."""


class Signals:
    """Counts signals during a ``with`` block, which must run in the main thread: elsewhere it counts nothing.

    ``gateway``: Py4J's, to the JVM; None under Spark Connect.
    """

    def __init__(self, gateway: Any = None):
        self._gateway = gateway
        self._by_process: Counter[str] = Counter()
        self._number = 0
        self._read, self._write = os.pipe()
        self._before: dict[int, Any] = {}
        self._before_in_jvm: dict[str, Any] = {}
        os.set_blocking(self._write, False)

    @property
    def count(self) -> int:
        """How often the user has asked for the end: a Ctrl-C that two processes get counts once."""
        return max(self._by_process.values(), default=0)

    @property
    def number(self) -> int:
        """The first signal's; 0 for none."""
        return self._number

    def wait(self, seconds: float) -> None:
        """Waits until the next signal, or that long."""
        if select.select([self._read], [], [], seconds)[0]:
            os.read(self._read, 4096)

    def restore(self) -> None:
        """Gives later signals the effect that they had before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        for name, handler in self._before_in_jvm.items():
            with contextlib.suppress(Exception):  # the JVM may be gone
                jvm = self._gateway.jvm
                jvm.sun.misc.Signal.handle(jvm.sun.misc.Signal(name), handler)
        self._before_in_jvm.clear()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle_here)
            if self._gateway is not None:
                self._listen_in_jvm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()
        os.close(self._read)
        os.close(self._write)

    def _handle_here(self, number: int, frame: FrameType | None) -> None:
        self._note("python", number)

    def _listen_in_jvm(self) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        jvm = self._gateway.jvm
        ensure_callback_server_started(self._gateway)
        for name in ("INT", "TERM"):
            # -Xrs keeps the JVM from taking signals: there they have no effect anyway.
            with contextlib.suppress(Exception):
                handler = _JvmHandler(self)
                self._before_in_jvm[name] = jvm.sun.misc.Signal.handle(jvm.sun.misc.Signal(name), handler)

    def _note(self, process: str, number: int) -> None:
        self._by_process[process] += 1
        self._number = self._number or number
        with contextlib.suppress(OSError):  # full, or closed: the count is enough
            os.write(self._write, b"!")


class _JvmHandler:
    """A ``sun.misc.SignalHandler``, called by a thread of Py4J's."""

    def __init__(self, signals: Signals):
        self._signals = signals

    def handle(self, sent: Any) -> None:
        self._signals._note("jvm", sent.getNumber())

    class Java:
        implements = ("sun.misc.SignalHandler",)
