"""A thread that waits for its links is woken by each thing that gives it work, and by nothing else."""

import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

import pytest

from cython_core.links.link_end import LinkEnd, link_bytes
from cython_core.links.link_wait import LinkWait

pytestmark = pytest.mark.timeout(20)
SHORT = 0.02


@dataclass
class Link:
    """As a TaskLink, of a process that a test starts."""

    end: LinkEnd
    there: LinkEnd
    pidfd: int = -1
    endings: int = 0
    fds: list[int] = field(default_factory=list)

    def ended(self):
        self.endings += 1


@pytest.fixture
def links():
    """Two links; a wait that watches them."""
    made, waits = [], LinkWait()
    waits.hold("test")
    for _ in range(2):
        fds = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(2)]
        memory = mmap.mmap(-1, link_bytes(64, 64))
        made.append(Link(LinkEnd(memory, 64, 64, True, *fds), LinkEnd(memory, 64, 64, False, *reversed(fds)), fds=fds))
        waits.watch(made[-1])
    yield (*made, waits)
    waits.release("test")
    assert waits.wake_fd == -1
    for link in made:
        for fd in link.fds:
            os.close(fd)


def slept(waits, seconds):
    began = time.monotonic()
    waits.wait(seconds)
    return time.monotonic() - began


def once_asleep(there, call):
    """Has a thread make the call as soon as the other end is known to sleep."""

    def watch():
        while not there.ring():
            pass
        call()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def wait_for(thread, waits):
    """It rings while a wait sleeps, maybe later than the longest one lasts."""
    waits.wait(None)
    while thread.is_alive():
        waits.wait(None)
    thread.join()


@pytest.mark.parametrize("seconds", [None, 60.0, float("inf")])
def test_no_wait_is_so_long_that_an_exception_of_another_thread_waits_for_it(links, seconds):
    assert SHORT <= slept(links[2], seconds) < 30, seconds


def test_nothing_ends_it_before_its_time(links):
    assert slept(links[2], SHORT) >= SHORT


def test_a_time_that_has_come_or_nearly_so_is_no_sleep(links):
    for seconds in (0.0, -1.0, 1e-9):
        assert min(slept(links[2], seconds) for _ in range(50)) < 0.001


def test_a_ring_of_any_link_ends_it_and_leaves_nothing_for_the_next_one(links):
    one, other, waits = links
    for link in (one, other):
        thread = once_asleep(link.there, lambda: None)
        wait_for(thread, waits)
        assert slept(waits, SHORT) >= SHORT


def test_it_does_not_sleep_if_a_frame_has_come(links):
    _, other, waits = links
    other.there.write(1, [b"x"])
    waits.wait(None)
    assert other.end.read() == (1, b"x")
    assert slept(waits, SHORT) >= SHORT


def test_it_goes_on_with_a_frame_for_which_there_is_room_now(links):
    one, _, waits = links
    assert not one.end.write(1, [b"x" * 100])
    while one.end.writes:
        one.there.read()
        waits.wait(SHORT)
    assert one.there.read() == (1, b"x" * 100)


def test_another_thread_ends_it(links):
    waits = links[2]
    thread = threading.Thread(target=os.eventfd_write, args=(waits.wake_fd, 1))
    thread.start()
    assert slept(waits, None) < 30
    thread.join()
    waits.wait(0.0)  # if it came later than the longest wait lasts
    assert slept(waits, SHORT) >= SHORT


def test_the_end_of_a_process_is_told_once_and_ends_each_wait_from_then_on(links):
    one, other, waits = links
    waits.unwatch(one)
    process = subprocess.Popen([sys.executable, "-c", ""])
    one.pidfd = os.pidfd_open(process.pid)
    waits.watch(one)
    while not one.endings:
        waits.wait(None)
    waits.wait(None)
    assert (one.endings, other.endings) == (1, 0)
    process.wait()
    os.close(one.pidfd)


def test_a_signal_is_handled_while_it_waits(links):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, SHORT)
        with pytest.raises(KeyboardInterrupt):
            wait_again_and_again(links[2])
    finally:
        signal.signal(signal.SIGALRM, before)


def wait_again_and_again(waits):
    while True:
        waits.wait(10 * SHORT)


def test_it_is_open_as_long_as_it_has_a_holder(links):
    waits = links[2]
    waits.hold("other")
    waits.release("other")
    waits.release("other")
    os.eventfd_write(waits.wake_fd, 1)
    waits.wait(None)
