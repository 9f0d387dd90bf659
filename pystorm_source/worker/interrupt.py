"""Makes another thread of this process raise an exception, wherever it is.

    in Python code                      between two instructions
    in a wait that a signal ends        the same: sleeps, locks, sockets of the main thread
    in other compiled code              when that returns

Threading law: ``listen`` is for the main thread, the rest for any thread.
"""

import ctypes
import signal
import threading
from types import FrameType
from typing import ClassVar

SIGNAL = getattr(signal, "SIGVTALRM", None)
"""Ends a wait of the main thread. Few programs use it, for timers of processor time. None: Windows."""


class CallTimedOut(SystemExit):
    """A call has lasted longer than ``topology.subprocess.timeout.secs``.

    As ``sys.exit`` in a component, it always fails the run, and ``except Exception`` lets it through. The thread that
    makes another one raise it can only name the class: ``texts`` has its text, by thread.
    """

    texts: ClassVar[dict[int, str]] = {}

    def __init__(self, *args: str):
        super().__init__(*(args or (self.texts.get(threading.get_ident(), ""),)))


def raise_in(thread: int, kind: type[BaseException]) -> None:
    """Makes that thread raise ``kind`` between two Python instructions, instead of one that is still pending."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def listen() -> None:
    """In the main thread: lets ``interrupt`` end its waits. Elsewhere, and if the program itself uses the signal, it
    does nothing."""
    if SIGNAL is None or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(SIGNAL) == signal.SIG_DFL:
        signal.signal(SIGNAL, _wake)


def interrupt(thread: int, text: str) -> None:
    """Makes that thread raise CallTimedOut with this text."""
    CallTimedOut.texts[thread] = text
    raise_in(thread, CallTimedOut)
    if SIGNAL is not None and thread == threading.main_thread().ident and signal.getsignal(SIGNAL) is _wake:
        signal.pthread_kill(thread, SIGNAL)


def _wake(number: int, frame: FrameType | None) -> None:
    """Its first instruction raises what is pending, which ends the system call; without it, Python would repeat the
    call."""


WAKES = _wake.__code__
