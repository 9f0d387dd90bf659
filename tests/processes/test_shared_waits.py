"""What a child's calls wait for is in memory that its parent reads, also while the child is blocked."""

import os
import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.clock import ManualClock
from pystorm_source.limits.permits import Permits
from pystorm_source.options.rate_limit import RateLimit
from pystorm_source.worker.processes.shared_waits import shared_waits


class Lessor:
    ahead = False
    open = False

    def is_open(self, permits):
        return self.open


def permits(name="api"):
    lessor = Lessor()
    return Permits(RateLimit(name, 1.0, 1.0), ManualClock(), lessor), lessor


def test_a_limit_is_named_once_it_is_used():
    seen, told = shared_waits(["api", "mail"])
    assert seen.used() == {}
    made, _ = permits("mail")
    told.of(made).begin()
    assert list(seen.used()) == ["mail"]
    assert seen.used()["mail"].waiting == 1
    told.of(made).end(True)
    waits = seen.used()["mail"]
    assert (waits.waiting, waits.look().calls) == (0, 1)
    assert waits.look() == told.of(made).look()


def test_a_wait_counts_while_it_lasts_and_is_a_pause_once_the_child_has_looked():
    seen, told = shared_waits(["api"])
    made, lessor = permits()
    told.of(made).begin()
    waits = seen.used()["api"]
    time.sleep(0.02)
    first = waits.look()
    assert first.waited >= 20_000_000
    assert not waits.is_paused
    lessor.open = True
    told.report()
    assert waits.is_paused
    before = waits.look()
    time.sleep(0.02)
    after = waits.look()
    assert after.waited == before.waited >= first.waited
    assert after.paused - before.paused >= 20_000_000
    told.of(made).end(False)
    assert (waits.waiting, waits.look().calls) == (0, 0)


@given(st.lists(st.sampled_from(["begin", "end", "open", "close", "tell"]), max_size=30))
def test_what_the_parent_sees_never_goes_back_and_is_the_childs_count_in_the_end(deeds):
    seen, told = shared_waits(["api"])
    made, lessor = permits()
    own, waiting, last = told.of(made), 0, (0, 0, 0)
    for deed in deeds:
        if deed == "begin":
            own.begin()
            waiting += 1
        elif deed == "end" and waiting:
            own.end(True)
            waiting -= 1
        elif deed in ("open", "close"):
            lessor.open = deed == "open"
        else:
            told.report()
        for waits in seen.used().values():
            now = waits.look()
            assert all(new >= old for new, old in zip(now, last, strict=True))
            assert waits.waiting == waiting
            last = now
    while waiting:
        own.end(False)
        waiting -= 1
    for waits in seen.used().values():
        theirs = own.look()
        assert waits.look().calls == theirs.calls
        assert abs(sum(waits.look()) - sum(theirs)) < 50_000_000


def test_a_forked_child_is_read_while_it_writes():
    """Each count that is read was true at some moment: as many calls as waits that have ended."""
    seen, told = shared_waits(["api"])
    made, _ = permits()
    rounds = 20_000
    if (child := os.fork()) == 0:
        own = told.of(made)
        for _ in range(rounds):
            own.begin()
            own.end(True)
        os._exit(0)
    ended = threading.Event()
    threading.Thread(target=lambda: (os.waitpid(child, 0), ended.set())).start()
    reads = last = 0
    while not ended.is_set():
        for waits in seen.used().values():
            calls = waits.look().calls
            assert last <= calls <= rounds
            assert waits.waiting in (0, 1)
            last, reads = calls, reads + 1
    assert seen.used()["api"].look().calls == rounds
    assert reads > 0
