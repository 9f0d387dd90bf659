"""Stacks of all threads when a test hangs in compiled code, where the signal of pytest-timeout is not handled.

pytest's own ``faulthandler_timeout`` starts and joins a thread for each test: 0.7 ms of a core, 14,000 times.
"""

import faulthandler
import time

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

AFTER_SECONDS = 150
"""Smaller: stacks are printed of tests that pytest-timeout would have ended. Larger: a hung run says nothing longer."""
RENEWED_SECONDS = 20
"""Larger: a test's stacks may come so much before it has taken AFTER_SECONDS. Smaller: more threads are started."""

_renewed = float("-inf")


def watch(config: pytest.Config) -> None:
    """Prints the stacks if no other test begins in time. A debugger, or a test that fails, ends the watch."""
    global _renewed
    now = time.monotonic()
    if now - _renewed > RENEWED_SECONDS:
        _renewed = now
        faulthandler.dump_traceback_later(AFTER_SECONDS, file=config.stash[fault_handler_stderr_fd_key])
